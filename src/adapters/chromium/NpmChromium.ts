/**
 * The Chromium that npm brings: unpacked once into the cache folder, beside the libraries and the
 * one font that it needs on a machine that has neither. Written aside and renamed, so that a folder
 * under its final name is always whole.
 */
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { recordDecoder } from "../../domain/json/RecordDecoder.ts"

/** A browser and what its process needs in its environment. */
export interface ChromiumProgram {
  readonly path: string
  readonly environment: Readonly<Record<string, string>>
}

/** Milliseconds that unpacking 70 MB may take. */
const UNPACK_MS_MAX = 120_000

/** Run by a process of its own, because the package unpacks into whatever TMPDIR is. */
const UNPACK = "await (await import(process.argv[1])).default.executablePath()"
/** Makes the package unpack its shared libraries too; nothing else reads it. */
const WITH_LIBRARIES = "AWS_Lambda_nodejs22.x"

const packageFile = (): string => fileURLToPath(import.meta.resolve("@sparticuz/chromium"))

const readPackage = recordDecoder(
  Schema.Struct({ version: Schema.optionalKey(Schema.String) }),
  "package.json"
)

const versionOf = async (file: string): Promise<string> => {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = join(folder, "package.json")
    if (!existsSync(manifest)) continue
    const { version } = readPackage(await readFile(manifest, "utf8"))
    if (version !== undefined) return version
  }
  throw new Error("@sparticuz/chromium has no version")
}

const run = (
  command: string,
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>>
): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: environment,
      stdio: ["ignore", "ignore", "pipe"],
      timeout: UNPACK_MS_MAX
    })
    let said = ""
    child.stderr.on("data", (chunk: Buffer) => (said = `${said}${chunk}`.slice(-2_000)))
    child.once("error", reject)
    child.once("close", (code) =>
      code === 0 ? resolve() : reject(new Error(`${command} ended with ${code}: ${said.trim()}`))
    )
  })

const FONT_SETTINGS = "fonts.conf"

/** Documents bring their fonts and need none of the machine; without any, it won't start. */
const fontSettings = (folder: string): string => `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${join(folder, "fonts")}</dir>
  <cachedir>${join(folder, "fonts-cache")}</cachedir>
</fontconfig>
`

const unpack = async (source: string, target: string): Promise<void> => {
  await mkdir(dirname(target), { recursive: true })
  const aside = await mkdtemp(`${target}.`)
  try {
    await run(
      process.execPath,
      ["--no-warnings", "--input-type=module", "--eval", UNPACK, import.meta.resolve(source)],
      { TMPDIR: aside, HOME: aside, AWS_EXECUTION_ENV: WITH_LIBRARIES }
    )
    await writeFile(join(aside, FONT_SETTINGS), fontSettings(target))
    await rename(aside, target)
  } catch (cause) {
    await rm(aside, { recursive: true, force: true })
    // Another process was first: its folder is as good.
    if (!existsSync(join(target, "chromium"))) throw cause
  }
}

const librariesOf = async (
  path: string,
  environment: Readonly<Record<string, string>>,
  folder: string
): Promise<Readonly<Record<string, string>>> => {
  const own = { LD_LIBRARY_PATH: join(folder, "al2023", "lib") }
  try {
    await run(path, ["--version"], environment)
    return environment
  } catch {
    await run(path, ["--version"], { ...environment, ...own })
    return { ...environment, ...own }
  }
}

/** Fails where npm has no Chromium for this machine, or where it can't be unpacked or run. */
export const npmChromium = async (cacheFolder: string): Promise<ChromiumProgram> => {
  const version = await versionOf(packageFile())
  const folder = join(cacheFolder, `chromium-${version}`)
  const path = join(folder, "chromium")
  if (!existsSync(path)) await unpack("@sparticuz/chromium", folder)
  const environment = { FONTCONFIG_FILE: join(folder, FONT_SETTINGS) }
  return { path, environment: await librariesOf(path, environment, folder) }
}
