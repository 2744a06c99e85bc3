/** Writes the published contracts: `node src/contracts/write.ts`, after a change of a record. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { publishedFiles } from "./PublishedFiles.ts"

const repository = join(import.meta.dirname, "..", "..")

for (const [path, content] of publishedFiles()) {
  const file = join(repository, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
  process.stdout.write(`${path}\n`)
}
