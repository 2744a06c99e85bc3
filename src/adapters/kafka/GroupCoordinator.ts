/**
 * A broker makes its topic of consumer groups when the first group is asked for, and answers
 * COORDINATOR_LOAD_IN_PROGRESS until it is read. Some clients give up on that. An installation whose
 * own processes need no groups asks for one at its start, so that no subscriber is the first.
 */
import { Effect, Schedule } from "effect"
import {
  errorOfCode,
  isRetriable,
  type KafkaSettings,
  makeCluster
} from "./protocol/KafkaClient.ts"

const GROUP_COORDINATOR = 0
const GIVE_UP_MS = 30_000

const describe = async (settings: KafkaSettings, groupId: string): Promise<void> => {
  const cluster = makeCluster(settings)
  try {
    await cluster.connect()
    const coordinator = await cluster.findGroupCoordinator({
      groupId,
      coordinatorType: GROUP_COORDINATOR
    })
    if (!coordinator.isConnected()) await coordinator.connect()
    const { groups } = await coordinator.describeGroups({ groupIds: [groupId] })
    const code = groups[0]?.errorCode ?? -1
    if (code !== 0) throw errorOfCode(code)
  } finally {
    await cluster.disconnect().catch(() => undefined)
  }
}

/** Ends once groups can be joined, or cannot in good time. `groupId`: any name. */
export const loadGroups = (settings: KafkaSettings, groupId: string): Effect.Effect<void> =>
  Effect.tryPromise({ try: () => describe(settings, groupId), catch: (cause) => cause }).pipe(
    Effect.retry({ while: isRetriable, schedule: Schedule.spaced("100 millis") }),
    Effect.timeout(GIVE_UP_MS),
    Effect.catch((error) =>
      Effect.logDebug("the broker's consumer groups are not ready", { error: String(error) })
    )
  )
