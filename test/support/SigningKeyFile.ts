/** A key file as an operator makes one, the same for all processes of a test run. */
import { generateKeyPairSync } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"

/** The path of a new Ed25519 key in a folder. */
export const signingKeyIn = (folder: string): string => {
  const path = join(folder, "signing-key-of-the-tests.pem")
  const { privateKey } = generateKeyPairSync("ed25519")
  writeFileSync(path, privateKey.export({ format: "pem", type: "pkcs8" }), { mode: 0o600 })
  return path
}
