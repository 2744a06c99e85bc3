/**
 * The routes of commands in quarantine. Says nothing of where they are kept.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { time } from "../../domain/Forms.ts"
import { quarantineKinds } from "../../domain/records/Quarantine.ts"
import { quarantineStates } from "../../services/administration/Quarantine.ts"
import { QUARANTINE_LISTED_MAX } from "../../services/administration/QuarantineTopic.ts"
import { optionalInput, textInput } from "../contract/Bodies.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { pageFields } from "../contract/ContractSchemas.ts"
import { operation } from "../contract/Operation.ts"
import { queryOf } from "../contract/Requests.ts"
import {
  FEWER_BY_BYTES,
  PAGE_SIZE_MAX,
  pageLinkHeader,
  pageParameters,
  readPage
} from "../messages/Pages.ts"
import { choiceParameter, type ValuesOf } from "../messages/QueryParameters.ts"
import { AdminAuthorization } from "../server/Authorization.ts"

/** Bytes of a command that are shown at most, before base64. */
export const SHOWN_BYTES_MAX = 65_536
/** Characters of a reason: the log has room for more. */
const REASON_LENGTH_MAX = 1_000

const ID_EXAMPLE = "3-1289"
const id = Schema.String.annotate({
  description: "`<partition>-<offset>` of the command on `alk.commands`.",
  examples: [ID_EXAMPLE]
})

const quarantinedFields = {
  id,
  state: Schema.Literals(quarantineStates).annotate({
    description: "`open` until somebody has replayed or dropped it."
  }),
  kind: Schema.Literals([...quarantineKinds, "unknown"]).annotate({
    description:
      "`unreadable`: it could not be read. `failed`: it could not be applied. `copy`: one like it "
      + "was written before. `foreign`: this service did not write it. `unknown`: an earlier "
      + "version, or another program, has put it here. The first two can be replayed."
  }),
  reason: Schema.String.annotate({ description: "Why it could not be applied." }),
  quarantined_at: time("When it was set aside."),
  partition: Schema.Int.annotate({ description: "Its partition." }),
  command_offset: Schema.Int.annotate({ description: "Its offset on `alk.commands`." }),
  bytes: Schema.Int.annotate({ description: "Its size." }),
  settled_at: Schema.optionalKey(time("When it was replayed or dropped.")),
  settled_by: Schema.optionalKey(
    Schema.String.annotate({ description: "Who did that; `admin` for the admin token." })
  ),
  settled_reason: Schema.optionalKey(Schema.String.annotate({ description: "Why." }))
}

const example = {
  id: ID_EXAMPLE,
  state: "open",
  kind: "failed",
  reason: "the step failed: no time: x",
  quarantined_at: "2026-11-21T12:00:00.000000Z",
  partition: 3,
  command_offset: 1289,
  bytes: 731
} as const

export const QuarantinedCommand = Schema.Struct(quarantinedFields).annotate({
  identifier: "QuarantinedCommand",
  examples: [example]
})

const QuarantineList = Schema.Struct({
  commands: Schema.Array(QuarantinedCommand),
  ...pageFields,
  left: Schema.Int.annotate({
    description: `Older ones that are not listed: the newest ${QUARANTINE_LISTED_MAX} are.`
  })
}).annotate({ identifier: "QuarantineList" })

const ShownCommand = Schema.Struct({
  ...quarantinedFields,
  tenant_id: Schema.optionalKey(Schema.String),
  receipt_id: Schema.optionalKey(
    Schema.String.annotate({ description: "The receipt that the sender got; it says `failed`." })
  ),
  received_at: Schema.optionalKey(
    Schema.String.annotate({ description: "When it was accepted, as the command says it." })
  ),
  command_kind: Schema.optionalKey(
    Schema.String.annotate({ description: "Such as `ingest` or `trace`." })
  ),
  items: Schema.optionalKey(
    Schema.Int.annotate({ description: "Events or operations on traces that it holds." })
  ),
  unreadable: Schema.optionalKey(
    Schema.String.annotate({ description: "Why this version can't read it." })
  ),
  content: Schema.String.annotate({
    description: `Base64 of its first ${SHOWN_BYTES_MAX} bytes.`,
    contentEncoding: "base64"
  }),
  truncated: Schema.Boolean.annotate({ description: "Whether it is longer than that." })
}).annotate({ identifier: "ShownCommand" })

export const ReasonInput = Schema.Struct({
  reason: optionalInput(textInput(REASON_LENGTH_MAX, "Why, for the log."))
}).annotate({ identifier: "QuarantineReason", examples: [{ reason: "fixed by version 0.1.1" }] })

const Replay = Schema.Struct({
  id,
  state: Schema.Literal("replayed"),
  settled_at: time("When that was decided."),
  tenant_id: Schema.String,
  receipt_id: Schema.String.annotate({ description: "The receipt of the command now." }),
  status: Schema.Literals(["committed", "failed"]),
  error: Schema.optionalKey(
    Schema.Struct({ code: Schema.String, message: Schema.String }).annotate({
      description: "Why it failed again; it is in quarantine under another id then."
    })
  )
}).annotate({ identifier: "QuarantineReplay" })

const listParameters = {
  ...pageParameters("Commands", PAGE_SIZE_MAX, FEWER_BY_BYTES),
  state: choiceParameter([...quarantineStates, "all"], {
    default: "open",
    description: "Which commands are listed."
  })
}

const quarantineQuery = queryOf(listParameters, {
  read: ({ state = "open", ...page }: ValuesOf<typeof listParameters>) => ({
    state,
    page: readPage(page, PAGE_SIZE_MAX)
  })
})

const listQuarantine = HttpApiEndpoint.get("listQuarantine", "/v1/admin/quarantine", {
  query: quarantineQuery,
  success: QuarantineList,
  error: errorsOf("object", 400, 401, 429, 503)
}).pipe(
  operation({
    summary: "List commands in quarantine",
    description:
      "Commands that the sequencer could not apply, by partition and offset. Their senders have "
      + "receipts that say `failed`. In the log of `_system`: `quarantine.listed`.",
    responseHeaders: pageLinkHeader
  })
)

const showQuarantined = HttpApiEndpoint.get("showQuarantined", "/v1/admin/quarantine/:id", {
  params: { id },
  success: ShownCommand,
  error: errorsOf("object", 401, 404, 429, 503)
}).pipe(
  operation({
    summary: "One command in quarantine",
    description:
      "With its content, which is that of a tenant. In the log of `_system`: `quarantine.shown`."
  })
)

const replayQuarantined = HttpApiEndpoint.post(
  "replayQuarantined",
  "/v1/admin/quarantine/:id/replay",
  {
    params: { id },
    payload: ReasonInput,
    success: Replay,
    error: errorsOf("object", 400, 401, 404, 409, 413, 415, 429, 503)
  }
).pipe(
  operation({
    optionalBody: true,
    summary: "Submit a command again",
    description:
      "Once: asked again within 7 days, it says what became of the first time, and 409 "
      + "`id_conflict` after that or where it was dropped. Its events come at the end of the chain, "
      + "with the times and ids that they had. 409 `not_replayable` where this service did not "
      + "write the command, where it is a copy, or where this version can't read it either. What "
      + "the sender has sent again meanwhile is found by the ids of events and by the "
      + "`Idempotency-Key`; a request with neither is stored twice. In the log of `_system`: "
      + "`quarantine.replayed`."
  })
)

const dropQuarantined = HttpApiEndpoint.post("dropQuarantined", "/v1/admin/quarantine/:id/drop", {
  params: { id },
  payload: ReasonInput,
  success: QuarantinedCommand,
  error: errorsOf("object", 400, 401, 404, 409, 413, 415, 429, 503)
}).pipe(
  operation({
    optionalBody: true,
    summary: "Drop a command",
    description:
      "It is done with and can't be replayed any more; its record stays on the topic. 409 "
      + "`id_conflict` where it was replayed or dropped before. In the log of `_system`: "
      + "`quarantine.dropped`."
  })
)

/** The routes of commands in quarantine, for the admin token. */
export class QuarantineApi extends HttpApiGroup.make("Quarantine")
  .add(listQuarantine, showQuarantined, replayQuarantined, dropQuarantined)
  .middleware(AdminAuthorization)
  .annotateMerge(OpenApi.annotations({ description: "Commands that could not be applied." })) {}
