/**
 * Serves verification: reads the bounds and what callers kept, and shows the verifier's report.
 * The report on one event is the verifier's report on its sequence number.
 */
import { Context, Effect, Redacted, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ChainEnds } from "../../actors/chainEnds/ChainEnds.ts"
import { Receipts } from "../../actors/follower/Receipts.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { type ChainLink, linkOf } from "../../domain/chain/ChainLink.ts"
import { treeNameOf } from "../../domain/chain/Chains.ts"
import { isClientId, verifyReceiptId } from "../../domain/Identifiers.ts"
import { EventLog } from "../../ports/EventLog.ts"
import { EventStore } from "../../ports/EventStore.ts"
import {
  forgedCheckpointReport,
  verifyClientEvents,
  verifyClientReceipt
} from "../../verify/ClientEvidence.ts"
import { type EventInclusion, inclusionOf } from "../../verify/EventInclusion.ts"
import { isForged, signedCheckpoints } from "../../verify/SignedCheckpoints.ts"
import { Verifier, type VerifyReport, type VerifyRequest } from "../../verify/Verifier.ts"
import { Api } from "../Api.ts"
import { json } from "../messages/Answer.ts"
import { invalid, notFound, unavailable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { inSlices } from "../messages/InSlices.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { clientEvidenceOf } from "./ClientEvidenceBody.ts"
import { reportAnswer, wantsLines } from "./VerifyAnswers.ts"
import { takeVerification } from "./VerifySlots.ts"

interface Predecessor {
  readonly sequence_number: number
  readonly hash: string
}

/** The report of a range that is one event, as the report of that event. */
const eventReport = (
  report: VerifyReport,
  eventId: string,
  link: ChainLink,
  predecessor: Predecessor | null,
  inclusion: EventInclusion | undefined
) => {
  const { breaks } = report
  const speaksOfPlace = ({ reason }: VerifyReport["breaks"][number]) =>
    reason !== "content_mismatch" && reason !== "checkpoint_mismatch"
  const valid = report.valid && inclusion?.valid !== false
  return {
    valid,
    status: valid ? "valid" : "broken",
    tenant_id: report.tenant_id,
    scheme: report.scheme,
    event_id: eventId,
    sequence_number: link.sequenceNumber,
    content: {
      valid: !breaks.some(({ reason }) => reason === "content_mismatch"),
      content_hash: link.contentHash
    },
    link: {
      valid: !breaks.some(speaksOfPlace),
      prev_hash: link.prevHash,
      hash: link.hash,
      predecessor
    },
    inclusion,
    breaks,
    verified_at: report.verified_at
  }
}

/** The link before a sequence; null if there is none. */
const predecessorOf = Effect.fnUntraced(function* (tenantId: string, sequence: number) {
  if (sequence <= 1) return null
  const store = yield* EventStore
  const rows = yield* Stream.runCollect(store.rows(tenantId, sequence - 1, sequence - 1))
  const [row] = rows.flat()
  const link = row === undefined ? undefined : linkOf(Buffer.from(row.body))
  return link === undefined ? null : { sequence_number: sequence - 1, hash: link.hash }
})

/** The final receipt of an id that a caller kept; undefined if there is none (any more). */
const storedReceipt = Effect.fnUntraced(function* (tenantId: string, id: unknown) {
  const { secret } = yield* ApiSettings
  const receipts = yield* Receipts
  if (typeof id !== "string" || !verifyReceiptId(Redacted.value(secret), tenantId, id)) {
    return undefined
  }
  const state = yield* receipts.state(tenantId, id)
  return state.status === "pending" ? undefined : state.receipt
})

/**
 * What a checkpoint that a caller kept asks for: the chain from its start up to the checkpoint's
 * size has to lead to its root. The report at once if the checkpoint is forged.
 */
const openedCheckpoint = Effect.fnUntraced(function* (
  checkpoints: Effect.Success<typeof signedCheckpoints>,
  tenantId: string,
  note: string
) {
  const ofTraces = treeNameOf(tenantId, "traces")
  const chain = note.split("\n", 1)[0]?.endsWith(`/${ofTraces}`) === true ? "traces" : "events"
  const opened = yield* checkpoints.open(treeNameOf(tenantId, chain), note)
  if ("unreadable" in opened) return yield* invalid("checkpoint", opened.unreadable)
  if (isForged(opened)) {
    return { forged: yield* forgedCheckpointReport(tenantId, opened.treeSize, opened.problem) }
  }
  const request: VerifyRequest = {
    tenantId,
    chain,
    toSequence: opened.treeSize,
    requireHead: false,
    checkpoints: [opened]
  }
  return request
})

/** Without the scope of them: a place is given back with its answer. */
const ownServices = Effect.map(
  Effect.context<ApiSettings | ChainEnds | EventLog | EventStore | ProjectionProgress | Receipts>(),
  Context.pick(ApiSettings, ChainEnds, EventLog, EventStore, ProjectionProgress, Receipts)
)

/** The handlers of VerifyApi. */
export const layerVerifyHandlers = HttpApiBuilder.group(
  Api,
  "Verify",
  Effect.fnUntraced(function* (handlers) {
    const { limits } = yield* ApiSettings
    const verifier = yield* Verifier
    const store = yield* EventStore
    const projection = yield* ProjectionProgress
    const services = yield* ownServices
    const checkpoints = yield* signedCheckpoints

    const answer = (request: VerifyRequest, inLines: boolean) =>
      reportAnswer(inLines, (told) => verifier.verifyTenant({ ...request, ...told }))

    const answerCheckpoint = Effect.fnUntraced(function* (
      tenantId: string,
      note: string,
      timeLimit: Pick<VerifyRequest, "timeLimitMs">,
      inLines: boolean
    ) {
      const opened = yield* openedCheckpoint(checkpoints, tenantId, note)
      return "forged" in opened
        ? json(opened.forged)
        : yield* answer({ ...opened, ...timeLimit }, inLines)
    })

    return handlers
      .handle(
        "verifyChain",
        Effect.fnUntraced(function* ({ query, request }) {
          const { tenantId } = yield* CurrentPrincipal
          const inLines = yield* wantsLines(request)
          yield* takeVerification(tenantId)
          return yield* answer({ ...query, tenantId }, inLines)
        })
      )
      .handleRaw(
        "verifyKept",
        Effect.fnUntraced(function* ({ query, request }) {
          const { tenantId } = yield* CurrentPrincipal
          const inLines = yield* wantsLines(request)
          const { bytes } = yield* readBody(request, [JSON_TYPE], limits.bodyBytesMax)
          const kept = yield* inSlices(() => clientEvidenceOf(bytes))
          yield* takeVerification(tenantId)
          if ("checkpoint" in kept) {
            return yield* answerCheckpoint(tenantId, kept.checkpoint, query, inLines)
          }
          const report =
            "events" in kept
              ? verifyClientEvents(tenantId, kept.events)
              : Effect.flatMap(storedReceipt(tenantId, kept.receipt.id), (stored) =>
                  verifyClientReceipt(tenantId, kept.receipt, stored)
                )
          return yield* reportAnswer(inLines, () => report)
        }, Effect.provideContext(services))
      )
      .handle(
        "verifyEvent",
        Effect.fnUntraced(function* ({ params: { id }, query }) {
          const { tenantId } = yield* CurrentPrincipal
          if (!isClientId(id)) return yield* notFound("event")
          const { deduplicate } = yield* readableView(projection, tenantId)
          const shown = yield* store.byId(tenantId, id, query.sequence_number, deduplicate)
          if (shown === undefined) return yield* notFound("event")
          const link = linkOf(Buffer.from(shown.body))
          if (link === undefined) return yield* unavailable("the stored event is unreadable")
          const { hash } = link
          // The row that is shown, wherever its bytes say that it belongs.
          const { sequenceNumber } = shown
          const report = yield* verifier.verify({
            tenantId,
            fromSequence: sequenceNumber,
            toSequence: sequenceNumber,
            requireHead: false,
            onlyRange: true
          })
          const predecessor = yield* predecessorOf(tenantId, sequenceNumber)
          const inclusion = yield* inclusionOf(checkpoints, tenantId, sequenceNumber, hash)
          return json(eventReport(report, id, link, predecessor, inclusion))
        }, Effect.provideContext(services))
      )
  })
)
