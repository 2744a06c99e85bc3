/** Sends operations on traces to the service, and reads what became of each. */
import { parseJson } from "../../domain/json/Json.ts"
import { ApiFailure } from "../ApiFailure.ts"
import type { Receipt, TraceBatchAccepted, TraceBatchResult } from "../gen/Api.d.ts"
import type { Loggable, Send, Verdict } from "../queue/Delivery.ts"
import { type SenderParts, settledReceipt } from "../Receipts.ts"
import type { TraceOperation } from "./Span.ts"

type Decided = Pick<TraceBatchResult, "errors" | "results">

/** The service refuses a command as a whole by this code when it could not look something up. */
const UNAVAILABLE = "unavailable"

const verdictOf = ({ errors, results }: Decided): Verdict => {
  const again = errors.find(({ code }) => code === UNAVAILABLE)
  if (again !== undefined) throw new ApiFailure(503, UNAVAILABLE, again.message)
  const existing = results.filter(({ outcome }) => outcome === "existing")
  return { refused: errors, duplicates: existing.length }
}

const decided = ({ errors = [], results = [], status }: Receipt): Decided => {
  if (status === "committed") return { errors, results } as Decided
  throw new ApiFailure(503, UNAVAILABLE, "the operations are written, but not applied yet")
}

/** An operation for the queue. All of them may be repeated: they have ids and times of their own. */
export const operationToLoggable = (operation: TraceOperation): Loggable => {
  const { op } = operation
  const id = "execution_id" in operation ? operation.execution_id : undefined
  const name = "id" in operation ? operation.id : "span_id" in operation ? operation.span_id : id
  return { id: `${op} ${name}`, isNamedByCaller: false, value: operation }
}

/** Batches of operations. Waits for the decision: an operation may name what is not there. */
export const traceSender =
  ({ clock, transport }: Pick<SenderParts, "clock" | "transport">): Send =>
  async (items, signal) => {
    const body = `{"operations":[${items.map(({ text }) => text).join(",")}]}`
    const path = "/api/v1/traces/batch?sync=true"
    const { text } = await transport.send({ method: "POST", path, body, signal })
    const answer = parseJson(text) as TraceBatchAccepted | TraceBatchResult
    return verdictOf(
      answer.status === "committed"
        ? answer
        : decided(await settledReceipt({ clock, transport }, answer.receipt_id, signal))
    )
  }
