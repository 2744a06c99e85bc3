/** `alk receipts`: what became of a request that was answered before it was committed. */
import type { Receipt } from "../../client/gen/Api.d.ts"
import type { Choice } from "../Contexts.ts"
import { CommandFailure, EXIT } from "../Failure.ts"
import { connect } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { details } from "../terminal/Table.ts"

interface ReceiptOptions extends OutputOptions, Choice {
  readonly wait?: boolean
}

/** Milliseconds to wait for a decision, and between two questions. */
const WAIT_MS = 30_000
const POLL_MS = 250

const receiptText = (receipt: Receipt): string => {
  const { accepted, committed_at, first_sequence_number, last_sequence_number } = receipt
  const range =
    first_sequence_number === undefined ? "" : `${first_sequence_number} to ${last_sequence_number}`
  return details([
    ["receipt", receipt.receipt_id],
    ["status", receipt.status],
    ["accepted", String(accepted ?? "")],
    ["rejected", String(receipt.rejected ?? "")],
    ["sequence", range],
    ["committed", committed_at ?? ""],
    ...(receipt.errors ?? []).map(
      ({ code, index, message }) => [`item ${index}`, `${code}: ${message}`] as const
    )
  ])
}

/** `alk receipts`. */
export const showReceipt = async (id: string, options: ReceiptOptions): Promise<void> => {
  const client = await connect(options)
  const until = Date.now() + (options.wait === true ? WAIT_MS : 0)
  const receipt = await withOutput(options, async (output) => {
    const ask = () => client.request("GET /v1/receipts/{id}", { path: { id } })
    let answer = await ask()
    while (answer.status === "pending" && Date.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      answer = await ask()
    }
    await (output.isHuman ? output.write(receiptText(answer)) : output.document(answer))
    return answer
  })
  const refused = receipt.errors?.length ?? 0
  if (receipt.status !== "failed" && refused === 0) return
  const what = receipt.error?.message ?? `${refused} items were refused`
  throw new CommandFailure(EXIT.failed, what, "correct them, and send them again")
}
