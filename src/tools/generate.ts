/**
 * `node src/tools/generate.ts` writes the files that are made from the source and names those that
 * have changed. With `--check` it writes nothing, and fails if a file is not what it would write.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { generatedFiles } from "./GeneratedFiles.ts"

const repository = join(import.meta.dirname, "..", "..")

const contentOf = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return undefined
  }
}

const changed = [...generatedFiles()].filter(
  ([path, content]) => contentOf(join(repository, path)) !== content
)

if (process.argv.includes("--check")) {
  for (const [path] of changed) process.stderr.write(`not up to date: ${path}\n`)
  if (changed.length > 0) {
    process.stderr.write("write them with: npm run generate\n")
    process.exitCode = 1
  }
} else {
  for (const [path, content] of changed) {
    const file = join(repository, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
    process.stdout.write(`${path}\n`)
  }
}
