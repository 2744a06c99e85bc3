/**
 * Every failure of the services that handlers call, as one of the documented refusals. The only
 * place that translates failures.
 */
import { FOLLOWED_BYTES_MAX, TENANT_FOLLOWED_BYTES_MAX } from "../../actors/feeds/FollowedBytes.ts"
import type { TooManyStreams } from "../../actors/feeds/LiveFeed.ts"
import type { ResumePointInvalid } from "../../actors/feeds/LiveStream.ts"
import type {
  ExecutionTooLarge,
  ExecutionUnknown,
  TooMuchFollowed
} from "../../actors/feeds/TraceFeed.ts"
import type { AdminRefused, AdminTimedOut } from "../../actors/follower/Keys.ts"
import { tooManyLinks } from "../../domain/registry/Registry.ts"
import { tooManySessions } from "../../domain/registry/Sessions.ts"
import type { SealUnavailable } from "../../exports/EvidenceSeal.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import type { StatsTooLarge, StoreUnavailable } from "../../ports/EventStore.ts"
import type { ExportFolderUnusable } from "../../ports/ExportFolder.ts"
import type { PartitionsRefused } from "../../services/administration/PartitionGrowth.ts"
import type { NotReplayable, QuarantinedUnknown } from "../../services/administration/Quarantine.ts"
import type { TooManySessions } from "../../services/administration/Sessions.ts"
import type { TooManyLinks } from "../../services/administration/ShareLinks.ts"
import type {
  CheckpointMismatch,
  CheckpointTimedOut,
  ProofRefused
} from "../../services/checkpoints/CheckpointFailures.ts"
import type { CommandLogBusy, CommandTooLarge } from "../../services/commands/CommandLog.ts"
import type {
  TraceFailed,
  TraceMismatch,
  TraceRefused,
  TraceUndecided
} from "../../services/ingest/TraceWrites.ts"
import { ApiError, invalid, notFound, refusedItem, unavailable } from "./ApiError.ts"

/** Everything that a handler may fail with. */
export type Failure =
  | ApiError
  | AdminRefused
  | AdminTimedOut
  | CheckpointMismatch
  | CheckpointTimedOut
  | CommandLogBusy
  | CommandTooLarge
  | ExecutionTooLarge
  | ExecutionUnknown
  | ExportFolderUnusable
  | LogUnavailable
  | NotReplayable
  | PartitionsRefused
  | ProofRefused
  | QuarantinedUnknown
  | ResumePointInvalid
  | SealUnavailable
  | StatsTooLarge
  | StoreUnavailable
  | TooManyLinks
  | TooManySessions
  | TooManyStreams
  | TooMuchFollowed
  | TraceFailed
  | TraceMismatch
  | TraceRefused
  | TraceUndecided

/** The header that makes a write repeatable. */
export const IDEMPOTENCY_HEADER = "Idempotency-Key"

/** The key was used before with another body. */
export const idempotencyMismatch = new ApiError({
  code: "idempotency_mismatch",
  message: `${IDEMPOTENCY_HEADER}: was used before with another body`,
  field: IDEMPOTENCY_HEADER
})

/** The command as a whole could not be applied. */
export const notApplied = (reason: string): ApiError =>
  unavailable(`the request was not applied: ${reason}`)

const busy = ({ maybeWritten }: CommandLogBusy): ApiError =>
  unavailable(
    maybeWritten
      ? "the log did not acknowledge in time; the request may still have been stored, so "
          + "retry it with the same event ids or the same Idempotency-Key"
      : "the service is overloaded and stored nothing of this request; try again"
  )

const traceRefusal = ({ code, message }: TraceRefused): ApiError => {
  if (code === "unavailable") return unavailable(message)
  return refusedItem(
    message,
    code === "invalid_value" || code === "too_many_spans" ? "invalid_request" : code
  )
}

const executionTooLarge =
  `what the execution says of itself and of running spans is over ${FOLLOWED_BYTES_MAX} `
  + "bytes, more than can be followed; read its spans from /api/v1/executions/{id}/spans"

const tooMuchFollowed =
  "running spans of the executions that are followed take all the memory for it, "
  + `${TENANT_FOLLOWED_BYTES_MAX} bytes of a tenant; close some of its streams, or try again`

/** The refusal that a failure is for the client. */
export const toApiError = (failure: Failure): ApiError => {
  switch (failure._tag) {
    case "ApiError":
      return failure
    case "AdminRefused":
      return new ApiError({
        code: failure.code === "limit_reached" ? "rate_limited" : failure.code,
        message: failure.message
      })
    case "AdminTimedOut":
    case "CheckpointMismatch":
    case "CheckpointTimedOut":
    case "ExportFolderUnusable":
    case "SealUnavailable":
      return unavailable(failure.message)
    case "CommandLogBusy":
      return busy(failure)
    case "CommandTooLarge":
      return new ApiError({
        code: "payload_too_large",
        message: "the request is larger than the log takes in one record; send fewer events"
      })
    case "ExecutionTooLarge":
      return new ApiError({ code: "payload_too_large", message: executionTooLarge })
    case "ExecutionUnknown":
      return notFound("execution")
    case "LogUnavailable":
      return unavailable("the log can't be reached; try again")
    case "ProofRefused": {
      const { code, field, message } = failure
      return field === undefined
        ? new ApiError({ code, message })
        : new ApiError({ code, message: `${field}: ${message}`, field })
    }
    case "NotReplayable":
      return new ApiError({ code: "not_replayable", message: failure.message })
    case "PartitionsRefused":
      return invalid("to", failure.message)
    case "QuarantinedUnknown":
      return notFound("command in quarantine")
    case "ResumePointInvalid":
      return new ApiError({ code: "invalid_request", message: failure.message })
    case "StatsTooLarge":
      return invalid(
        "interval",
        `more than ${failure.bucketsMax} buckets; ask for a coarser interval or a shorter time`,
        "invalid_range"
      )
    case "StoreUnavailable":
      return unavailable("the query store can't be reached; try again")
    case "TooManyLinks":
      return new ApiError({ code: "rate_limited", message: tooManyLinks(failure.limit) })
    case "TooManySessions":
      return new ApiError({ code: "rate_limited", message: tooManySessions(failure.limit) })
    case "TooManyStreams":
      return new ApiError({
        code: "rate_limited",
        message: `this tenant has ${failure.limit} streams open already, the most allowed`,
        headers: { "ratelimit-limit": String(failure.limit), "ratelimit-remaining": "0" }
      })
    case "TooMuchFollowed":
      return new ApiError({ code: "rate_limited", message: tooMuchFollowed })
    case "TraceFailed":
      return notApplied(failure.message)
    case "TraceMismatch":
      return idempotencyMismatch
    case "TraceRefused":
      return traceRefusal(failure)
    case "TraceUndecided":
      return unavailable(
        "the request is stored, but did not become visible in time; it may still happen, so retry "
          + "with the same ids or the same key"
      )
  }
}
