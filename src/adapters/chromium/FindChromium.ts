/**
 * Finds a Chromium that can print: the one that the configuration names, else one that is installed
 * on this machine, else the one from npm. Starts none of them.
 */
import { constants } from "node:fs"
import { access, stat } from "node:fs/promises"
import { delimiter, join } from "node:path"
import { type ChromiumProgram, npmChromium } from "./NpmChromium.ts"

export interface ChromiumSettings {
  /** Only this one, when it is given. */
  readonly path: string | undefined
  /** Where the one from npm is unpacked. */
  readonly cacheFolder: string
  /**
   * `auto`: with its sandbox where it starts with one, else without, and a warning; `required`: not
   * at all without; `off`: without, because something else keeps it in. `auto` if missing.
   */
  readonly sandbox?: "auto" | "required" | "off"
}

/** Names under which packages of Linux and macOS install it. */
const COMMANDS = [
  "chromium",
  "chromium-browser",
  "chromium-headless-shell",
  "chrome-headless-shell",
  "google-chrome-stable",
  "google-chrome"
]
const APPLICATIONS = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium"
]

const isProgram = async (path: string): Promise<boolean> => {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

const installedPlaces = (): ReadonlyArray<string> => {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "")
  return [
    ...COMMANDS.flatMap((command) => folders.map((folder) => join(folder, command))),
    ...APPLICATIONS
  ]
}

const installed = async (): Promise<string | undefined> => {
  for (const path of installedPlaces()) if (await isProgram(path)) return path
  return undefined
}

/** One that might do, and how a person would call it. */
export interface Candidate {
  readonly name: string
  readonly program: () => Promise<ChromiumProgram>
}

/** What may be tried, in this order. */
export const candidatesOf = async (
  settings: ChromiumSettings
): Promise<ReadonlyArray<Candidate>> => {
  const { cacheFolder, path } = settings
  const at = (place: string): Candidate => ({
    name: place,
    program: async () => {
      if (!(await isProgram(place))) throw new Error("there is no program at this path")
      return { path: place, environment: {} }
    }
  })
  if (path !== undefined) return [at(path)]
  const own = await installed()
  return [
    ...(own === undefined ? [] : [at(own)]),
    { name: "the one of @sparticuz/chromium", program: () => npmChromium(cacheFolder) }
  ]
}
