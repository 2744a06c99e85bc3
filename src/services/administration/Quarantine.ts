/**
 * What an administrator does with commands in quarantine: looks at them, submits one again, or
 * drops it. Each of it is in the log of the system tenant, and each command is settled once.
 */
import { Context, Effect, Layer, Schema } from "effect"
import type { AdminRefused, AdminTimedOut } from "../../actors/follower/Keys.ts"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { defined } from "../../domain/Defined.ts"
import type { Command } from "../../domain/records/Command.ts"
import type { Receipt } from "../../domain/records/Receipt.ts"
import { RECEIPTS_RETENTION_DAYS } from "../../domain/records/Topics.ts"
import { QUARANTINE_ID, type QuarantineAct } from "../../domain/registry/RegistryEntry.ts"
import { currentTime, microsOf } from "../../domain/Timestamp.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import {
  fingerprintOf,
  type IdempotencyKey,
  Ingest,
  type IngestFailure,
  type IngestOutcome
} from "../ingest/Ingest.ts"
import { type Quarantined, type QuarantinedBytes, QuarantineTopic } from "./QuarantineTopic.ts"
import { SystemAuditLog } from "./SystemAuditLog.ts"

const DAY_MICROS = 86_400_000_000

/** A command, and what was done with it. */
export type Listed<A extends Quarantined = Quarantined> = A & { readonly act?: QuarantineAct }

export const quarantineStates = ["open", "replayed", "dropped"] as const
export type QuarantineState = (typeof quarantineStates)[number]

/** Nothing has to be done with a command that was replayed or dropped. */
export const stateOf = ({ act }: Listed): QuarantineState => act?.state ?? "open"

/** There is no such command in quarantine. */
export class QuarantinedUnknown extends Schema.TaggedError<QuarantinedUnknown>()(
  "QuarantinedUnknown",
  { id: Schema.String }
) {}

/** The command can't be submitted again; it can be dropped. */
export class NotReplayable extends Schema.TaggedError<NotReplayable>()("NotReplayable", {
  message: Schema.String
}) {}

/** Who asks for what. */
export interface QuarantineRequest {
  readonly id: string
  /** Id of the key; `admin` for the admin token. */
  readonly keyId: string
  readonly reason: string | undefined
}

/** What became of a command that was submitted again. */
export interface Replayed {
  readonly act: QuarantineAct
  readonly tenantId: string
  /** Undefined where nothing was decided in time: asked again, the replay says what became of it. */
  readonly receipt: Receipt | undefined
}

type ActFailure = QuarantinedUnknown | AdminRefused | AdminTimedOut | LogUnavailable

export class Quarantine extends Context.Service<
  Quarantine,
  {
    /** By partition and offset; `left` counts older ones that are not shown. */
    list(
      keyId: string
    ): Effect.Effect<
      { readonly commands: ReadonlyArray<Listed>; readonly left: number },
      LogUnavailable
    >
    show(
      id: string,
      keyId: string
    ): Effect.Effect<Listed<QuarantinedBytes>, QuarantinedUnknown | LogUnavailable>
    /**
     * Submits the command again, once. Asked again, it says what became of that; after the time that
     * receipts are kept it is refused.
     */
    replay(
      request: QuarantineRequest
    ): Effect.Effect<Replayed, NotReplayable | ActFailure | IngestFailure>
    drop(request: QuarantineRequest): Effect.Effect<Listed, ActFailure>
  }
>()("alk/Quarantine") {}

const DROP_IT = "drop it, or let whoever sent it send it again"

/** The command as it would be submitted again, or why not. */
const replayable = ({ command, kind }: QuarantinedBytes): Command | NotReplayable => {
  const refuse = (message: string) => new NotReplayable({ message })
  switch (kind) {
    case undefined:
      return refuse(
        "this record does not carry the MAC of this service: an earlier version has written it, or "
          + `another program; ${DROP_IT}`
      )
    case "foreign":
      return refuse("this service did not write the command; drop it")
    case "copy":
      return refuse("the command is a copy of one that was applied before; drop it")
    case "failed":
    case "unreadable":
      if ("unreadable" in command) {
        return refuse(`this version can't read the command: ${command.unreadable}`)
      }
      return command.kind === "ingest" || command.kind === "trace"
        ? command
        : refuse(`commands of the kind ${command.kind} are not submitted again; drop it`)
  }
}

/** Names the replay as a request with an Idempotency-Key: a second one has the outcome of the first. */
const nameOf = (id: string): IdempotencyKey => ({
  method: "POST",
  path: "/v1/admin/quarantine/replay",
  key: id
})

const isRecent = ({ settled_at }: QuarantineAct): boolean =>
  microsOf(currentTime()) - microsOf(settled_at) < RECEIPTS_RETENTION_DAYS * DAY_MICROS

const receiptOf = (outcome: IngestOutcome): Effect.Effect<Receipt | undefined, NotReplayable> => {
  switch (outcome.kind) {
    case "visible":
    case "failed":
      return Effect.succeed(outcome.receipt)
    case "mismatch":
      return Effect.fail(
        new NotReplayable({ message: "its Idempotency-Key was used for another request since" })
      )
    case "written":
    case "undecided":
      return Effect.succeed(undefined)
  }
}

const make = Effect.gen(function* () {
  const topic = yield* QuarantineTopic
  const view = yield* RegistryView
  const auditLog = yield* SystemAuditLog
  const ingest = yield* Ingest

  const withAct = <A extends Quarantined>(command: A): Listed<A> => ({
    ...command,
    ...defined({ act: view.registry().quarantineAct(command.id) })
  })

  const found = Effect.fnUntraced(function* (id: string) {
    const [, partition, offset] = QUARANTINE_ID.exec(id) ?? []
    if (offset === undefined) return yield* new QuarantinedUnknown({ id })
    const command = yield* topic.find(Number(partition), Number(offset))
    return command === undefined ? yield* new QuarantinedUnknown({ id }) : withAct(command)
  })

  const log = (actor: string, action: string, id: string, metadata: Record<string, unknown>) =>
    auditLog.log({ actor, action, resource: { type: "quarantine", id }, metadata })

  /** Logged and done together, or refused because another request was first. */
  const settle = Effect.fnUntraced(function* (
    { id, keyId, reason }: QuarantineRequest,
    state: QuarantineAct["state"],
    command: Quarantined
  ) {
    const act: QuarantineAct = {
      id,
      state,
      settled_at: currentTime(),
      settled_by: keyId,
      ...defined({ reason })
    }
    yield* auditLog.record(
      { op: "settle_quarantined", quarantine_act: act },
      {
        actor: keyId,
        action: `quarantine.${state}`,
        resource: { type: "quarantine", id },
        metadata: { ...defined({ reason, kind: command.kind }), bytes: command.bytes }
      }
    )
    return act
  })

  const submit = Effect.fnUntraced(function* (id: string, command: Command, value: Buffer) {
    const { errors, events, idempotency, tenantId, traces, warnings } = command
    const key = nameOf(id)
    const outcome = yield* ingest.ingest({
      tenantId,
      items: { events, errors, warnings, ...defined({ traces }) },
      until: "visible",
      idempotency:
        idempotency === undefined
          ? { key, fingerprint: fingerprintOf(tenantId, key, value, { forgetConflict: false }) }
          : // With the client's own key: what it has sent again meanwhile is not applied twice.
            { key, fingerprint: idempotency, receiptId: command.receiptId }
    })
    return yield* receiptOf(outcome)
  })

  const replay = Effect.fn("Quarantine.replay")(function* (request: QuarantineRequest) {
    const quarantined = yield* found(request.id)
    const command = replayable(quarantined)
    if (command instanceof NotReplayable) return yield* command
    const earlier = quarantined.act
    // What was decided may not have been submitted, if the process ended in between.
    const isUnderWay = earlier?.state === "replayed" && isRecent(earlier)
    const act = isUnderWay ? earlier : yield* settle(request, "replayed", quarantined)
    const receipt = yield* submit(request.id, command, quarantined.value)
    return { act, tenantId: command.tenantId, receipt }
  })

  return Quarantine.of({
    list: Effect.fnUntraced(function* (keyId: string) {
      const { commands, left } = yield* topic.all
      yield* log(keyId, "quarantine.listed", "all", { commands: commands.length + left })
      return { commands: commands.map(withAct), left }
    }),
    show: Effect.fnUntraced(function* (id: string, keyId: string) {
      const command = yield* found(id)
      yield* log(keyId, "quarantine.shown", id, { bytes: command.bytes })
      return command
    }),
    replay,
    drop: Effect.fn("Quarantine.drop")(function* (request: QuarantineRequest) {
      const command = yield* found(request.id)
      return { ...command, act: yield* settle(request, "dropped", command) }
    })
  })
})

/** Commands in quarantine, as an administrator sees them. */
export const layerQuarantine: Layer.Layer<
  Quarantine,
  never,
  QuarantineTopic | RegistryView | SystemAuditLog | Ingest
> = Layer.effect(Quarantine, make)
