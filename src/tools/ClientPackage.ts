/**
 * Compiles `src/client` to what the package exports, below `dist`: JavaScript for any runtime, since
 * Node runs no TypeScript in node_modules, and its declarations. Without the compiler, which is for
 * development, it leaves the declarations out. A package.json beside them makes `dist` a package of
 * its own, which needs nothing else.
 */
import { spawnSync } from "node:child_process"
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"
import { parseJson } from "../domain/json/Json.ts"

const repository = join(import.meta.dirname, "..", "..")
const SOURCE = "src/client"
const COMPILER = "node_modules/typescript/bin/tsc"
/** Node 20, and browsers of the last three years. */
const TARGET = "es2022"

const compile = async (outdir: string): Promise<void> => {
  await build({
    absWorkingDir: repository,
    entryPoints: {
      index: `${SOURCE}/index.ts`,
      ...Object.fromEntries(
        readdirSync(join(repository, SOURCE, "middleware"))
          .filter((name) => /^[A-Z]/.test(name))
          .map((name) => [name.toLowerCase().slice(0, -3), `${SOURCE}/middleware/${name}`])
      )
    },
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "neutral",
    target: TARGET,
    legalComments: "none",
    outdir,
    logLevel: "warning"
  })
}

/** The compiler leaves the endings of imports as they are in the source. */
const mendImports = (folder: string): void => {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath, entry.name)
    const text = readFileSync(file, "utf8")
    writeFileSync(file, text.replace(/(from "\.[^"]*?)(?<!\.d)\.ts"/g, '$1.js"'))
  }
}

const declare = (outdir: string): void => {
  const flags = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly"]
  const folders = ["--rootDir", "src", "--outDir", outdir]
  const { status, stdout } = spawnSync(
    process.execPath,
    [COMPILER, "-p", SOURCE, ...flags, ...folders],
    { cwd: repository, encoding: "utf8" }
  )
  if (status !== 0) throw new Error(`the declarations can't be made:\n${stdout}`)
  cpSync(join(repository, SOURCE, "gen"), join(outdir, "client", "gen"), { recursive: true })
  mendImports(outdir)
}

/** What is taken from the package.json of the repository. */
interface Manifest {
  readonly [member: string]: unknown
  readonly exports: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** What a path of the repository's package is in the package of the client alone. */
const withoutFolder = (path: string): string => path.replace(/^\.\/dist\//, "./")

/** The package of the client alone: the same name, version and exports, without dependencies. */
const describeAlone = (folder: string): void => {
  const text = readFileSync(join(repository, "package.json"), "utf8")
  const { engines, exports, license, name, type, version } = parseJson(text) as Manifest
  const entries = Object.entries(exports).map(([entry, files]) => [
    entry,
    Object.fromEntries(Object.entries(files).map(([kind, path]) => [kind, withoutFolder(path)]))
  ])
  const description = "The client of alk, an audit log whose chains can be verified."
  const alone = { name, version, description, license, type, engines }
  writeFileSync(
    join(folder, "package.json"),
    `${JSON.stringify({ ...alone, exports: Object.fromEntries(entries) }, null, 2)}\n`
  )
  cpSync(join(repository, "LICENSE"), join(folder, "LICENSE"))
}

/** Whether the compiler is there, which is for development. */
export const canDeclare = (): boolean => existsSync(join(repository, COMPILER))

/** Writes the package's files below a folder, in place of those that are there. */
export const buildClientPackage = async (folder: string): Promise<void> => {
  rmSync(folder, { recursive: true, force: true })
  await compile(join(folder, "client"))
  if (canDeclare()) declare(join(folder, "types"))
  else process.stdout.write("without typescript: alk/client has no declarations\n")
  describeAlone(folder)
}
