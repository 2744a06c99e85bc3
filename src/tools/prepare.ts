/** `npm ci` and `npm pack` run this: it writes what the package exports, below `dist`. */
import { join } from "node:path"
import { buildClientPackage } from "./ClientPackage.ts"

await buildClientPackage(join(import.meta.dirname, "..", "..", "dist"))
