/**
 * `node src/tools/generate.ts` writes the files that are made from the source and names those that
 * have changed. With `--check` it writes nothing, and fails if a file is not what it would write.
 */
import { generatedFiles, outdated, writeFiles } from "./GeneratedFiles.ts"

const files = generatedFiles()

if (process.argv.includes("--check")) {
  const paths = outdated(files)
  for (const path of paths) process.stderr.write(`not up to date: ${path}\n`)
  if (paths.length > 0) {
    process.stderr.write("write them with: npm run generate\n")
    process.exitCode = 1
  }
} else for (const path of writeFiles(files)) process.stdout.write(`${path}\n`)
