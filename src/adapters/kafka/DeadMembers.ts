/**
 * Members of a consumer group whose program has ended without leaving. Kafka keeps each for the time
 * of its session, and gives its partitions to nobody else meanwhile: six seconds of every restart
 * after a kill. A program that is alone on its broker knows that they are gone.
 */
import { Effect } from "effect"
import {
  errorOfCode,
  type KafkaSettings,
  makeCluster,
  type RawCluster
} from "./protocol/KafkaClient.ts"

const GROUP_COORDINATOR = 0
/** Milliseconds for all of it; who isn't removed by then leaves when its session is over. */
const GIVE_UP_MS = 5_000

const removeFrom = async (
  cluster: RawCluster,
  groupId: string,
  clientId: string
): Promise<number> => {
  await cluster.connect()
  const coordinator = await cluster.findGroupCoordinator({
    groupId,
    coordinatorType: GROUP_COORDINATOR
  })
  if (!coordinator.isConnected()) await coordinator.connect()
  const { groups } = await coordinator.describeGroups({ groupIds: [groupId] })
  const group = groups.find((found) => found.groupId === groupId)
  if (group === undefined || group.errorCode !== 0) throw errorOfCode(group?.errorCode ?? -1)
  const dead = group.members.filter((member) => member.clientId === clientId)
  for (const { memberId } of dead) await coordinator.leaveGroup({ groupId, memberId })
  return dead.length
}

/** Removes the members of the group that joined with the client id of these settings. */
export const removeDeadMembers = (settings: KafkaSettings, groupId: string): Effect.Effect<void> =>
  Effect.acquireUseRelease(
    Effect.sync(() => makeCluster(settings)),
    (cluster) => Effect.tryPromise(() => removeFrom(cluster, groupId, settings.clientId)),
    (cluster) => Effect.promise(() => cluster.disconnect().catch(() => undefined))
  ).pipe(
    Effect.timeout(GIVE_UP_MS),
    Effect.matchEffect({
      onFailure: (error) =>
        Effect.logDebug("members that have ended were not removed", {
          group: groupId,
          error: String(error)
        }),
      onSuccess: (removed) =>
        removed === 0
          ? Effect.void
          : Effect.logInfo("removed members of the program before", { group: groupId, removed })
    })
  )
