/** What became of a request that was answered before it was decided. */
import { parseJson } from "../domain/json/Json.ts"
import { ApiFailure } from "./ApiFailure.ts"
import type { Receipt } from "./gen/Api.d.ts"
import type { Clock } from "./Pause.ts"
import type { Reports } from "./queue/Reports.ts"
import { waitMs } from "./RetryAfter.ts"
import type { Transport } from "./Transport.ts"

/** Milliseconds in which a receipt should be final: the service commits within fractions of one. */
const SETTLES_MS = 30_000

/** What senders are made of. */
export interface SenderParts {
  readonly transport: Transport
  readonly clock: Clock
  readonly reports: Reports
}

/**
 * A receipt once it is committed, or as it is when half a minute is over. Rejects with ApiFailure; a
 * request that could not be applied at all is worth another one.
 */
export const settledReceipt = async (
  { clock, transport }: Pick<SenderParts, "clock" | "transport">,
  receiptId: string,
  signal: AbortSignal | undefined
): Promise<Receipt> => {
  const until = clock.now() + SETTLES_MS
  for (let attempts = 1; ; attempts++) {
    const path = `/v1/receipts/${encodeURIComponent(receiptId)}`
    const { text } = await transport.send({ method: "GET", path, signal })
    const receipt = parseJson(text) as Receipt
    if (receipt.status === "failed") {
      const message = receipt.error?.message ?? "it was not applied; try again"
      throw new ApiFailure(503, "unavailable", message)
    }
    if (receipt.status === "committed" || clock.now() > until) return receipt
    await clock.wait(waitMs(attempts, clock.random), signal)
  }
}
