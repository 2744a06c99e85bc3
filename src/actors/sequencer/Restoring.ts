/** What the parts of restoring a partition's state share. */
import { Effect, Schema } from "effect"
import { COMMAND_FORMAT } from "../../domain/records/Command.ts"
import type { StateRecord } from "../../domain/records/StateRecords.ts"
import type { RegistryContent } from "../../domain/registry/RegistryContent.ts"
import { readRegistryRecord } from "../../domain/registry/RegistryEntry.ts"
import type { RegistryTable } from "../../domain/registry/RegistryTable.ts"
import type { CheckpointStore } from "../../ports/CheckpointStore.ts"
import type {
  EventLog,
  LogReader,
  LogUnavailable,
  TransactionalWriter,
  WriterFenced
} from "../../ports/EventLog.ts"
import { takeAll } from "../log/Malformed.ts"
import { newStateRecord, type Windows } from "./SequencerState.ts"

/** The partition can't be sequenced without risking its chains; a person has to look. */
export class PartitionRefused extends Schema.TaggedError<PartitionRefused>()("PartitionRefused", {
  partition: Schema.Int,
  message: Schema.String
}) {}

/** What a restore needs of the store. */
export type SignedCheckpoints = Pick<CheckpointStore["Service"], "list" | "outside">

export interface Restoring {
  readonly log: EventLog["Service"]
  readonly reader: LogReader
  readonly writer: TransactionalWriter
  readonly partition: number
  readonly windows: Windows
  /** As checkpoints name it. */
  readonly serviceName: string
  /** Keys of this process, which may not be published yet. */
  readonly vkeys: ReadonlyArray<string>
  /** What was signed, as the store has it; undefined in a process without one. */
  readonly checkpoints?: SignedCheckpoints
}

export const refuse = (
  partition: number,
  message: string
): Effect.Effect<never, PartitionRefused> =>
  Effect.fail(new PartitionRefused({ partition, message }))

/** Refuses what is lost, unless an operator has accepted it: then it is said. */
export const giveUp = Effect.fnUntraced(function* (
  partition: number,
  acceptsLoss: boolean,
  lost: string
) {
  if (!acceptsLoss) return yield* refuse(partition, `${lost}. See 'alk repair --help'`)
  yield* Effect.logError(`accepted by alk repair: ${lost}`, { partition })
})

/** True for the format of a command that only a newer program understands. */
export const isNewer = (format: number): boolean => format > COMMAND_FORMAT

export const newerFormat = (partition: number, offset: number, format: number): PartitionRefused =>
  new PartitionRefused({
    partition,
    message:
      `the command at offset ${offset} has format ${format}, this program reads up to `
      + `${COMMAND_FORMAT}: upgrade the sequencers first`
  })

/** Records of one transaction. */
const WRITTEN_TOGETHER = 500

/** Writes records to the changelog, in order. */
export const writeState = Effect.fnUntraced(function* (
  { partition, writer }: Pick<Restoring, "partition" | "writer">,
  records: ReadonlyArray<StateRecord>
): Effect.fn.Return<void, LogUnavailable | WriterFenced> {
  for (let at = 0; at < records.length; at += WRITTEN_TOGETHER) {
    const part = records.slice(at, at + WRITTEN_TOGETHER)
    yield* writer.commit([], () => part.map((record) => newStateRecord(partition, record)))
  }
})

/** What `alk.registry` holds, for the partition that writes it. */
export const readRegistry = (
  { log, reader }: Restoring,
  registry: RegistryTable,
  content?: RegistryContent
) =>
  takeAll(log, reader, { topic: "registry", partition: 0 }, ({ key, value }) => {
    content?.take({ key: String(key), value })
    const change = readRegistryRecord(key, value)
    if (change !== undefined) registry.take([change])
  })
