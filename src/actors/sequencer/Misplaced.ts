/**
 * Records in a partition that is not their tenant's. Commands are written there by a process that does
 * not know of a growth: an earlier version that went on meanwhile. Applied they would begin a second
 * chain of the tenant. Events, facts and checkpoints are copies that no sequencer has written.
 */
import { Effect } from "effect"
import { PROBE_TENANT } from "../../domain/Identifiers.ts"
import type { EventLog } from "../../ports/EventLog.ts"
import { readPlacement } from "../log/PlacementOfLog.ts"
import type { SequencerState } from "./SequencerState.ts"
import type { ReceivedCommand } from "./SequencerStep.ts"

/**
 * Whether a tenant has its chains in this partition: it is placed there, or the changelog has a head of
 * it. `readPlacement` comes first.
 */
export const isPlacedHere =
  (
    log: EventLog["Service"],
    partition: number,
    state: Pick<SequencerState, "heads" | "traceHeads">
  ) =>
  (tenantId: string): boolean =>
    log.partitionOf(tenantId) === partition
    || state.heads.has(tenantId)
    || state.traceHeads.has(tenantId)

/** The partition of the tenant, if it is another one. */
const placeElsewhere = (
  log: EventLog["Service"],
  partition: number,
  received: ReceivedCommand
): number | undefined => {
  // A probe is of every partition.
  if (!("command" in received) || received.command.tenantId === PROBE_TENANT) return undefined
  const place = log.partitionOf(received.command.tenantId)
  return place === partition ? undefined : place
}

/** Whether a tenant has no chain here: it may be one of which this process has not heard. */
const isNew = ({ heads, traceHeads }: SequencerState, received: ReceivedCommand): boolean => {
  if (!("command" in received)) return false
  const { tenantId } = received.command
  return tenantId !== PROBE_TENANT && !heads.has(tenantId) && !traceHeads.has(tenantId)
}

/** The same commands, without the content of those that are misplaced: they go to quarantine. */
export const withoutMisplaced = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  state: SequencerState,
  all: ReadonlyArray<ReceivedCommand>
) {
  const { partition } = state
  const isElsewhere = (one: ReceivedCommand) => placeElsewhere(log, partition, one) !== undefined
  // This process may not follow the registry.
  if (all.some((one) => isElsewhere(one) || isNew(state, one))) yield* readPlacement(log)
  if (!all.some(isElsewhere)) return all
  return all.map((received): ReceivedCommand => {
    const place = placeElsewhere(log, partition, received)
    if (place === undefined || !("command" in received)) return received
    const { command, ...more } = received
    const { receiptId, tenantId } = command
    const unreadable =
      `the records of tenant ${tenantId} are in partition ${place}, not ${partition}: the process that `
      + "has written this command does not know of partitions that were added. Upgrade it, then replay "
      + "this command"
    return { ...more, unreadable, tenantId, receiptId }
  })
})
