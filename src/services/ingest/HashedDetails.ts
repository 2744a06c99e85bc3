/** Details ready for a fact: their text with a salt, and the hash over both. */
import { randomHex } from "../../domain/Identifiers.ts"
import { factDetailsHash } from "../../domain/traces/FactText.ts"
import type { PreparedDetails } from "../../domain/traces/TraceFact.ts"

/** Details from their RFC 8785 text. */
export const hashedDetails = (text: string): PreparedDetails => {
  const salt = randomHex()
  return { text, salt, hash: factDetailsHash(salt, text) }
}
