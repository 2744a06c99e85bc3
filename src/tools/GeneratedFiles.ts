/** Every file that a program makes of the source. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import { CLI_PAGE_FILE, cliPage } from "../cli/HelpPage.ts"
import { publishedFiles } from "../contracts/PublishedFiles.ts"
import { openApiText } from "../http/Api.ts"
import { API_ROUTES_FILE, apiRoutes } from "./ApiRoutes.ts"
import { API_TYPES_FILE, apiTypes } from "./ApiTypes.ts"
import { METRICS_PAGE_FILE, metricsPage } from "./MetricsPage.ts"
import { generateOtlp } from "./OtlpCode.ts"
import { SETTINGS_PAGE_FILE, settingsPage } from "./SettingsPage.ts"
import { acceptModule, moduleText, splitModule } from "./WasmModules.ts"

/** Where the program imports the protobuf code from. */
const OTLP_CODE = "src/services/ingest/otlp/gen"

/** What the definitions say themselves. */
const DOC_COMMENTS = /^ *\/\*\*\n(?: *\*.*\n)+\n?/gm

const otlpFiles = (): ReadonlyArray<readonly [string, string]> => {
  const folder = mkdtempSync(join(tmpdir(), "alk-otlp-"))
  try {
    generateOtlp(folder)
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const file = join(entry.parentPath, entry.name)
        const code = readFileSync(file, "utf8").replaceAll(DOC_COMMENTS, "")
        return [join(OTLP_CODE, relative(folder, file)), code] as const
      })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The types of the API, which no commit has: `npm ci` writes them. */
export const apiFiles = (): ReadonlyMap<string, string> =>
  new Map([
    [API_TYPES_FILE, apiTypes(openApiText())],
    [API_ROUTES_FILE, apiRoutes(openApiText())]
  ])

/** Content by path, relative to the repository. */
export const generatedFiles = (): ReadonlyMap<string, string> =>
  new Map([
    ...publishedFiles(),
    ["schemas/openapi.json", openApiText()] as const,
    ...apiFiles(),
    [acceptModule.file, moduleText(acceptModule)] as const,
    [splitModule.file, moduleText(splitModule)] as const,
    [CLI_PAGE_FILE, cliPage()] as const,
    [METRICS_PAGE_FILE, metricsPage()] as const,
    [SETTINGS_PAGE_FILE, settingsPage()] as const,
    ...otlpFiles()
  ])

const repository = join(import.meta.dirname, "..", "..")

const contentOf = (path: string): string | undefined => {
  try {
    return readFileSync(join(repository, path), "utf8")
  } catch {
    return undefined
  }
}

/** The paths of those that are missing, or are not what the source makes. */
export const outdated = (files: ReadonlyMap<string, string>): ReadonlyArray<string> =>
  [...files].flatMap(([path, content]) => (contentOf(path) === content ? [] : [path]))

/** Writes those that are outdated, whose paths it returns. */
export const writeFiles = (files: ReadonlyMap<string, string>): ReadonlyArray<string> => {
  const paths = outdated(files)
  for (const path of paths) {
    const file = join(repository, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, files.get(path)!)
  }
  return paths
}
