/**
 * Acts on the service itself: written through the sequencer of the system tenant, which decides
 * whether they may happen, and logged in its chain. One place, so that nothing is
 * done to keys, links or exports that the log does not hold.
 */
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { AdminRefused, AdminTimedOut } from "../../actors/follower/Keys.ts"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import type { Receipts } from "../../actors/follower/Receipts.ts"
import { SYSTEM_TENANT } from "../../domain/Identifiers.ts"
import type { Command } from "../../domain/records/Command.ts"
import { toBatch } from "../../domain/records/EventBatch.ts"
import type { RegistryOperation } from "../../domain/registry/RegistryEntry.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import type { CommandLog } from "../commands/CommandLog.ts"
import { newCommand } from "../commands/NewCommand.ts"
import { prepareOwnEvent } from "../ingest/Prepare.ts"
import { decided, submitted } from "./Submit.ts"

/** Time that an act waits for the sequencer. */
const DECISION_TIMEOUT = "10 seconds"

/** What the log of the system tenant says of an act. */
export interface SystemAct {
  /** Id of the key that did it, `admin`, or the service's own name. */
  readonly actor: string
  readonly action: string
  readonly resource: { readonly type: string; readonly id: string }
  readonly metadata: Record<string, unknown>
  /** Of the event: what is logged again under it adds nothing. */
  readonly id?: string
}

export type SystemActFailure = AdminRefused | AdminTimedOut | LogUnavailable

export class SystemAuditLog extends Context.Service<
  SystemAuditLog,
  {
    /**
     * Log the act and do it, or neither. Succeeds once this process knows the registry's answer.
     */
    record(operation: RegistryOperation, act: SystemAct): Effect.Effect<void, SystemActFailure>
    /** Log an act that changes nothing in the registry. Succeeds when that is durable. */
    log(act: SystemAct): Effect.Effect<void, LogUnavailable>
  }
>()("alk/SystemAuditLog") {}

/** The command that logs an act; `redacted` is `ALK_SECRET`. */
export const systemCommand = (redacted: Redacted.Redacted, act: SystemAct): Command => {
  const secret = Redacted.value(redacted)
  const { action, actor, id, metadata, resource } = act
  const event = { id, actor: { id: actor, type: "system" }, action, resource, metadata }
  return {
    ...newCommand("ingest", secret, SYSTEM_TENANT),
    events: toBatch([prepareOwnEvent(event, { index: 0, tenantId: SYSTEM_TENANT, secret })])
  }
}

const refusals = ["not_found", "limit_reached", "legal_hold", "tenant_deleted"] as const

const make = Effect.fnUntraced(function* (secret: Redacted.Redacted) {
  const view = yield* RegistryView
  const context = yield* Effect.context<CommandLog | Receipts>()

  return SystemAuditLog.of({
    log: (act) =>
      submitted(systemCommand(secret, act), "administer").pipe(Effect.provideContext(context)),
    record: Effect.fnUntraced(function* (operation, act) {
      const command: Command = { ...systemCommand(secret, act), kind: "registry", operation }
      const receipt = yield* decided(command, "administer", DECISION_TIMEOUT).pipe(
        Effect.provideContext(context)
      )
      if (Option.isNone(receipt)) {
        const message = "no sequencer decided in time; it may still happen"
        return yield* new AdminTimedOut({ message })
      }
      const { error, status } = receipt.value
      if (status === "failed") {
        const code = refusals.find((known) => known === error?.code) ?? "id_conflict"
        return yield* new AdminRefused({ code, message: error?.message ?? "refused" })
      }
      yield* view.caughtUp
    })
  })
})

/** `secret` is `ALK_SECRET`. */
export const layerSystemAuditLog = (
  secret: Redacted.Redacted
): Layer.Layer<SystemAuditLog, never, RegistryView | CommandLog | Receipts> =>
  Layer.effect(SystemAuditLog, make(secret))
