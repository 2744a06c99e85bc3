/**
 * Serves verification: reads the bounds and shows the verifier's report. Judges nothing by itself;
 * the report on one event is the verifier's word on its sequence number.
 */
import { Effect, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Visibility } from "../actors/Visibility.ts"
import { isClientId } from "../domain/Identifiers.ts"
import { linkOf, type Link } from "../domain/Link.ts"
import { EventStore } from "../ports/EventStore.ts"
import { Verifier, type BreakReason, type VerifyReport } from "../verify/Verifier.ts"
import { answering, json } from "./Answer.ts"
import { Api } from "./Api.ts"
import { notFound, refusable, unavailable } from "./ApiError.ts"
import { CurrentPrincipal } from "./Authorization.ts"
import { refuseInverted } from "./EventParameters.ts"
import { eventParameters } from "./QueryContract.ts"
import { readQuery } from "./QueryParameters.ts"
import { readableView } from "./StoreView.ts"
import { verifyParameters } from "./VerifyContract.ts"

/** The break that speaks of what an event says, not of its place. */
const CONTENT: BreakReason = "content_mismatch"

interface Predecessor {
  readonly sequence_number: number
  readonly hash: string
}

/** The report of a range that is one event, as the report of that event. */
const eventReport = (
  report: VerifyReport,
  eventId: string,
  link: Link,
  predecessor: Predecessor | null
) => ({
  valid: report.valid,
  status: report.valid ? "valid" : "broken",
  tenant_id: report.tenant_id,
  scheme: report.scheme,
  event_id: eventId,
  sequence_number: link.sequenceNumber,
  content: {
    valid: !report.breaks.some(({ reason }) => reason === CONTENT),
    content_hash: link.contentHash
  },
  link: {
    valid: !report.breaks.some(({ reason }) => reason !== CONTENT),
    prev_hash: link.prevHash,
    hash: link.hash,
    predecessor
  },
  breaks: report.breaks,
  verified_at: report.verified_at
})

/** The handlers of VerifyApi. */
export const layerVerifyHandlers = HttpApiBuilder.group(
  Api,
  "Verify",
  Effect.fnUntraced(function*(handlers) {
    const verifier = yield* Verifier
    const store = yield* EventStore
    const visibility = yield* Visibility

    const predecessorOf = Effect.fnUntraced(function*(tenantId: string, sequence: number) {
      if (sequence <= 1) return null
      const rows = yield* Stream.runCollect(store.rows(tenantId, sequence - 1, sequence - 1))
      const [row] = rows.flat()
      const link = row === undefined ? undefined : linkOf(Buffer.from(row.body))
      return link === undefined ? null : { sequence_number: sequence - 1, hash: link.hash }
    })

    return handlers
      .handleRaw(
        "verifyChain",
        answering(
          Effect.fnUntraced(function*({ request }) {
            const { tenantId } = yield* CurrentPrincipal
            const { from, from_sequence, require_head, to, to_sequence } = yield* refusable(() => {
              const { values } = readQuery(request.url, verifyParameters)
              refuseInverted(["from", "to"], values.from, values.to)
              refuseInverted(
                ["from_sequence", "to_sequence"],
                values.from_sequence,
                values.to_sequence
              )
              return values
            })
            const report = yield* verifier.verify({
              tenantId,
              requireHead: require_head ?? true,
              ...(from === undefined ? {} : { from }),
              ...(to === undefined ? {} : { to }),
              ...(from_sequence === undefined ? {} : { fromSequence: from_sequence }),
              ...(to_sequence === undefined ? {} : { toSequence: to_sequence })
            })
            return json(report)
          })
        )
      )
      .handleRaw(
        "verifyEvent",
        answering(
          Effect.fnUntraced(function*({ params: { id }, request }) {
            const { tenantId } = yield* CurrentPrincipal
            const { values } = yield* refusable(() => readQuery(request.url, eventParameters))
            if (!isClientId(id)) return yield* notFound("event")
            const { final } = yield* readableView(visibility, tenantId)
            const body = yield* store.byId(tenantId, id, values.sequence_number, final)
            if (body === undefined) return yield* notFound("event")
            const link = linkOf(Buffer.from(body))
            if (link === undefined) return yield* unavailable("the stored event is unreadable")
            const { sequenceNumber } = link
            const report = yield* verifier.verify({
              tenantId,
              fromSequence: sequenceNumber,
              toSequence: sequenceNumber,
              requireHead: false
            })
            const predecessor = yield* predecessorOf(tenantId, sequenceNumber)
            return json(eventReport(report, id, link, predecessor))
          })
        )
      )
  })
)
