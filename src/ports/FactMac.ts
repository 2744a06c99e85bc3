/**
 * What makes and checks the MACs of stored facts: of `ALK_SECRET`, as those of records are. Without
 * one, as where nothing outlives the process, it is random.
 */
import { randomBytes } from "node:crypto"
import { Context } from "effect"
import { RecordMac } from "../domain/records/RecordMac.ts"

const SECRET_BYTES = 32

export const FactMac: Context.Reference<RecordMac> = Context.Reference<RecordMac>("alk/FactMac", {
  defaultValue: () => new RecordMac(randomBytes(SECRET_BYTES).toString("hex"))
})
