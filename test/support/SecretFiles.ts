/** Secrets in files, as the program takes them without a word. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshFolder } from "./Program.ts"

/** Variables that name files with these secrets, in a new folder. */
export const inFiles = (secrets: Readonly<Record<string, string>>): Record<string, string> => {
  const folder = freshFolder("secrets")
  return Object.fromEntries(
    Object.entries(secrets).map(([name, value]) => {
      const file = join(folder, name)
      writeFileSync(file, `${value}\n`, { mode: 0o600 })
      return [`${name}_FILE`, file]
    })
  )
}
