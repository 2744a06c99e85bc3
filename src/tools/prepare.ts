/**
 * `npm ci` and `npm pack` run this: it writes the types of the API, and what the package exports,
 * below `dist`. Without the development dependencies there are neither types nor declarations.
 */
import { join } from "node:path"
import { buildClientPackage, canDeclare } from "./ClientPackage.ts"

if (canDeclare()) {
  // Loaded here: it imports development dependencies.
  const { apiFiles, writeFiles } = await import("./GeneratedFiles.ts")
  writeFiles(apiFiles())
}
await buildClientPackage(join(import.meta.dirname, "..", "..", "dist"))
