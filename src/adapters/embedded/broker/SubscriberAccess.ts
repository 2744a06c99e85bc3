/**
 * What a subscriber of the embedded broker may do: read the public topics, in consumer groups of its
 * own. Says so to the broker at each start, which is a change only the first time.
 */
import { Effect, Schedule } from "effect"
import kafkajs from "kafkajs"
import { publicTopics, topicName } from "../../../domain/records/Topics.ts"
import { groupName } from "../../kafka/Membership.ts"
import { type KafkaSettings, makeKafka } from "../../kafka/protocol/KafkaClient.ts"
import { type BrokerNotStarted, brokerNotStarted } from "./BrokerNotStarted.ts"
import { SUBSCRIBER } from "./BrokerUsers.ts"

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs

/** A broker that has just started may not lead its metadata yet. */
const retrying = Schedule.spaced("250 millis").pipe(Schedule.upTo({ times: 40 }))

const ofSubscriber = {
  principal: `User:${SUBSCRIBER}`,
  host: "*",
  operation: AclOperationTypes.READ
}
const ALLOW = AclPermissionTypes.ALLOW

const rightsUnder = (prefix: string) => [
  ...publicTopics.map((kind) => ({
    ...ofSubscriber,
    permissionType: ALLOW,
    resourceType: AclResourceTypes.TOPIC,
    resourceName: topicName(prefix, kind),
    resourcePatternType: ResourcePatternTypes.LITERAL
  })),
  {
    ...ofSubscriber,
    permissionType: ALLOW,
    resourceType: AclResourceTypes.GROUP,
    resourceName: "*",
    resourcePatternType: ResourcePatternTypes.LITERAL
  },
  // A member of the program's own groups would be given partitions that no process works on then.
  {
    ...ofSubscriber,
    permissionType: AclPermissionTypes.DENY,
    resourceType: AclResourceTypes.GROUP,
    resourceName: groupName(prefix, ""),
    resourcePatternType: ResourcePatternTypes.PREFIXED
  }
]

const grant = async (settings: KafkaSettings, prefix: string): Promise<void> => {
  const admin = makeKafka(settings).admin()
  try {
    await admin.connect()
    await admin.createAcls({ acl: rightsUnder(prefix) })
  } finally {
    await admin.disconnect()
  }
}

/** `settings` are the program's; `folder` is the broker's, for the error. */
export const grantSubscriber = (
  settings: KafkaSettings,
  prefix: string,
  folder: string
): Effect.Effect<void, BrokerNotStarted> =>
  Effect.tryPromise(() => grant(settings, prefix)).pipe(
    Effect.retry(retrying),
    Effect.mapError(({ cause }) =>
      brokerNotStarted("no_answer", folder, `rights of ${SUBSCRIBER}: ${String(cause)}`)
    )
  )
