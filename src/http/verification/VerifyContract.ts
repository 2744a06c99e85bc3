/**
 * The routes that recompute what is stored. Says nothing of how it is checked.
 */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { chains } from "../../domain/chain/Chains.ts"
import { defined } from "../../domain/Defined.ts"
import type { VerifyRequest } from "../../verify/Verifier.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { VerifyReport } from "../contract/ContractSchemas.ts"
import { operation } from "../contract/Operation.ts"
import { queryOf } from "../contract/Requests.ts"
import { filterParameters, unfilteredHints } from "../events/EventParameters.ts"
import { eventId, eventParameters } from "../events/QueryContract.ts"
import { JSON_TYPE, NDJSON_TYPE } from "../messages/MediaTypes.ts"
import {
  booleanParameter,
  choiceParameter,
  integerParameter,
  refuseInverted
} from "../messages/QueryParameters.ts"
import { Authorization } from "../server/Authorization.ts"
import { EventVerifyReport, KEPT_EVENTS_MAX, KeptInput, VerifyLines } from "./VerifySchemas.ts"
import { atOnceNote } from "./VerifySlots.ts"

/** What a report can be, the default first. */
export const reportTypes = [JSON_TYPE, NDJSON_TYPE] as const

/** Seconds that a client may let a check take at most. */
const TIME_LIMIT_SECONDS_MAX = 86_400

const timeLimit = integerParameter({
  minimum: 1,
  maximum: TIME_LIMIT_SECONDS_MAX,
  description:
    "Seconds after which the check ends as `incomplete`, with what it has found; resume with "
    + "`from_sequence` one after `last_sequence_number`."
})

const verifyParameters = {
  chain: choiceParameter(chains, {
    description:
      "Only this chain: the audit events, or the trace facts. Without it both are verified, "
      + "unless sequences bound the range: those are of the events then."
  }),
  from: filterParameters.from,
  to: filterParameters.to,
  from_sequence: filterParameters.from_sequence,
  to_sequence: filterParameters.to_sequence,
  require_head: booleanParameter({
    default: true,
    description: "Compare the end with the log's head, if no upper bound is given."
  }),
  time_limit: timeLimit
}

const timeLimitOf = (seconds: number | undefined) =>
  defined({ timeLimitMs: seconds === undefined ? undefined : seconds * 1_000 })

/** Query of `GET /v1/verify`: what to verify, but for the tenant. */
const verifyQuery = queryOf(verifyParameters, {
  hints: unfilteredHints("verification"),
  read: (values): Omit<VerifyRequest, "tenantId"> => {
    const { chain, from, from_sequence, require_head, time_limit, to, to_sequence } = values
    refuseInverted(["from", "to"], from, to)
    refuseInverted(["from_sequence", "to_sequence"], from_sequence, to_sequence)
    return {
      requireHead: require_head ?? true,
      ...defined({ chain, from, to, fromSequence: from_sequence, toSequence: to_sequence }),
      ...timeLimitOf(time_limit)
    }
  }
})

/** Query of `POST /v1/verify`. */
const keptQuery = queryOf(
  { time_limit: timeLimit },
  { read: ({ time_limit }) => timeLimitOf(time_limit) }
)

const verifyChain = HttpApiEndpoint.get("verifyChain", "/v1/verify", {
  query: verifyQuery,
  success: [VerifyReport, VerifyLines],
  error: errorsOf("object", 400, 401, 403, 406, 429, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Verify a range of the chain",
    description:
      "Recomputes contents, links and the head over the sequence span that covers the bounds; "
      + "the whole chain is recomputed to find that span where `from` or `to` is given; "
      + "without bounds over the full supported history, future-dated events included, and the "
      + "tenant's trace facts too. The expected head is the last record of the chain's topic. A "
      + "finished check answers 200, whatever it found; so does one that was not finished, with "
      + `\`status\` \`incomplete\`. \`Accept: ${NDJSON_TYPE}\` gives a line of progress about `
      + `every second, and the report last. ${atOnceNote}`
  })
)

const verifyKept = HttpApiEndpoint.post("verifyKept", "/v1/verify", {
  query: keptQuery,
  payload: KeptInput,
  success: [VerifyReport, VerifyLines],
  error: errorsOf("object", 400, 401, 403, 406, 413, 415, 429, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Verify what you kept",
    description:
      `Up to ${KEPT_EVENTS_MAX} events, each recomputed and compared with what the chain holds `
      + "at its sequence (erased since is fine); a receipt, whose events and `head_hash` have to "
      + "be where it says; or a signed checkpoint, to whose root the chain has to lead from "
      + `its start. \`expected\` is what you kept, \`actual\` what is stored. ${atOnceNote}`
  })
)

const verifyEvent = HttpApiEndpoint.get("verifyEvent", "/v1/verify/events/:id", {
  params: eventId,
  query: queryOf(eventParameters),
  success: EventVerifyReport,
  error: errorsOf("object", 400, 401, 403, 404, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Verify one event",
    description:
      "Its content, its link to the event before it, and, where a signed checkpoint covers it, "
      + "the proof that it is in the checkpoint's tree."
  })
)

/** The routes of the tag Verify. */
export class VerifyApi extends HttpApiGroup.make("Verify")
  .add(verifyChain, verifyKept, verifyEvent)
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ description: "Recomputing what is stored." })) {}
