/**
 * The addresses of the console. All pages are one document, whose program shows what the address
 * names; its files are below FILES_PATH.
 */

/** Pages beside `/`. */
export const consolePages = [
  "/sign-in",
  "/events",
  "/live",
  "/executions",
  "/executions/:id",
  "/chain",
  "/evidence",
  "/receipts",
  "/receipts/:id",
  "/health",
  "/keys",
  "/settings",
  "/start",
  "/share"
] as const

/** True for the template of a page beside `/`. */
export const isPage = (template: string): boolean => consolePages.some((page) => page === template)

/** Where the files of the console are. */
export const FILES_PATH = "/console"

/** Every path of the console but `/`, which it shares with the API. */
export const consolePaths: ReadonlyArray<string> = [...consolePages, `${FILES_PATH}/:file`]
