/**
 * The public keys of checkpoints: each process that signs publishes its key through the registry,
 * with the endorsement of the key before it, and every process reads them from there. A key that
 * was rotated away stays published, for what it signed until then.
 */
import { Effect, Layer, type Redacted, Schedule } from "effect"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { type PublishedKey, PublishedKeys } from "../../actors/follower/PublishedKeys.ts"
import { TreeSigners } from "../../actors/follower/TreeSigners.ts"
import { type Partition, scanAll } from "../../actors/log/PartitionScan.ts"
import { isVkey, type OpenedCheckpoint, type Signer } from "../../domain/chain/Checkpoint.ts"
import {
  checkpointRefusal,
  endorse,
  handOversIn,
  keyLine,
  openEndorsement
} from "../../domain/chain/KeyLine.ts"
import { defined } from "../../domain/Defined.ts"
import { RecordFields } from "../../domain/json/RecordFields.ts"
import { readTreeSigner, SIGNER_KEY } from "../../domain/records/StateRecords.ts"
import { lineKeysOf } from "../../domain/registry/Registry.ts"
import type { SigningKey } from "../../domain/registry/RegistryEntry.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import { EventLog, type LogRecord } from "../../ports/EventLog.ts"
import { systemCommand } from "../administration/SystemAuditLog.ts"
import { CommandLog } from "../commands/CommandLog.ts"

/** The keys of the registry with what each counts for; `trusted`: vkeys that the operator lists. */
export const publishedKeys = (
  keys: Iterable<SigningKey>,
  trusted: ReadonlyArray<string>
): ReadonlyArray<PublishedKey> => {
  const sorted = [...keys]
    .filter(({ vkey }) => isVkey(vkey))
    .sort((left, right) => (left.added_at < right.added_at ? -1 : 1))
  const line = keyLine({ keys: lineKeysOf(sorted), pinned: trusted, believesRoots: true })
  return sorted.flatMap(({ added_at, endorsement, public_key, vkey }) => {
    const standing = line.find((one) => one.vkey === vkey)
    if (standing === undefined) return []
    return [{ ...standing, publicKey: public_key, addedAt: added_at, ...defined({ endorsement }) }]
  })
}

const make = Effect.fnUntraced(function* (trusted: ReadonlyArray<string>) {
  const view = yield* RegistryView
  const signers = yield* TreeSigners
  let known: ReadonlyArray<SigningKey> = []
  let published: ReadonlyArray<PublishedKey> = []
  const all = Effect.sync(() => {
    const now = [...view.registry().signingKeys.values()]
    // Entries are never changed, but replaced.
    const isSame = now.length === known.length && now.every((key, index) => key === known[index])
    if (!isSame) published = publishedKeys(now, trusted)
    known = now
    return published
  })

  const currentRefusal = Effect.fnUntraced(function* (tree: string, opened: OpenedCheckpoint) {
    const keys = yield* all
    const { handOvers, signer } = yield* signers.of(tree, opened.keyIds)
    // Before a sequencer has recorded its key, none of the keys has handed anything over.
    const current = signer ?? keys[0]?.vkey
    const handOversBy = handOversIn(handOvers)
    const own = { origin: opened.origin, handOversBy, signer: current }
    return checkpointRefusal(keys, own, opened)
  })

  return PublishedKeys.of({
    caughtUp: view.caughtUp,
    all,
    refusal: (tree, opened) =>
      Effect.flatMap(currentRefusal(tree, opened), (refusal) =>
        refusal === undefined
          ? Effect.succeed(undefined)
          : // This process may not know of an endorsement yet, or of a tree handed over.
            Effect.all([view.caughtUp, signers.caughtUp(tree)]).pipe(
              Effect.andThen(currentRefusal(tree, opened))
            )
      )
  })
})

/** The keys that the registry knows; `trusted` are vkeys that the operator lists. */
export const layerPublishedKeys = (
  trusted: ReadonlyArray<string> = []
): Layer.Layer<PublishedKeys, never, RegistryView | TreeSigners> =>
  Layer.effect(PublishedKeys, make(trusted))

/**
 * Ask for a key to be published, endorsed by the key before it where that one is given; it changes
 * nothing if it is already. Waits for no decision.
 */
export const publishSigningKey = Effect.fn("SigningKeys.publish")(function* (
  signer: Signer,
  secret: Redacted.Redacted,
  previous?: Signer
) {
  const commands = yield* CommandLog
  const { keyId, name, publicKey, vkey } = signer
  const command = systemCommand(secret, {
    actor: name,
    action: "signing_key.added",
    resource: { type: "signing_key", id: keyId },
    metadata: { vkey, ...defined({ endorsed_by: previous?.keyId }) }
  })
  const now = currentTime()
  const signing_key: SigningKey = {
    key_id: keyId,
    vkey,
    public_key: publicKey,
    added_at: now,
    ...defined({ endorsement: previous && endorse(previous, vkey, now) })
  }
  yield* commands.submit({
    ...command,
    kind: "registry",
    operation: { op: "add_signing_key", signing_key }
  })
})

/** Time between two looks at whether a change of keys is complete. */
const CHANGE_POLL = "1 second"

/** Succeeds when every partition is signed with the key, and the one before has endorsed it. */
export const keyChanged = Effect.fn("SigningKeys.changed")(function* (
  { keyId, vkey }: Signer,
  previous: Signer
) {
  const log = yield* EventLog
  const reader = yield* log.reader
  const changed = new Set<number>()
  let isEndorsed = false
  const partitions = Array.from({ length: log.partitions }, (_, partition) => partition)
  const read = <A>(record: LogRecord, of: (value: Buffer) => A): A | undefined => {
    try {
      return record.refused !== undefined || record.value === null ? undefined : of(record.value)
    } catch {
      // Its readers report it; here it is only not what is looked for.
      return undefined
    }
  }
  const look = (place: Partition, key: string, take: (record: LogRecord) => void) =>
    scanAll(log, reader, place, (records) =>
      records.filter((record) => record.key?.toString() === key).forEach(take)
    )
  const lookAtAll = Effect.gen(function* () {
    for (const partition of partitions.filter((one) => !changed.has(one))) {
      yield* look({ topic: "state", partition }, SIGNER_KEY, (record) => {
        const signer = read(record, readTreeSigner)
        const isNew = signer?.vkey === vkey && signer.previous === previous.vkey
        if (isNew) changed.add(partition)
        else if (signer !== undefined) changed.delete(partition)
      })
    }
    yield* look({ topic: "registry", partition: 0 }, `signing_key/${keyId}`, (record) => {
      const endorsement = read(record, (value) => RecordFields.of(value, "key").text("endorsement"))
      isEndorsed ||=
        endorsement !== undefined && openEndorsement(endorsement, previous.vkey)?.nextVkey === vkey
    })
    return isEndorsed && changed.size === partitions.length
  })
  yield* lookAtAll.pipe(
    Effect.repeat({ schedule: Schedule.spaced(CHANGE_POLL), until: (isComplete) => isComplete })
  )
}, Effect.scoped)
