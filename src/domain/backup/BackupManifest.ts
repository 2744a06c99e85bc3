/**
 * The manifest of a backup: which parts of which topics the folder holds, in which files with which
 * hashes, and how far each chain reaches. What it does not name is not part of the backup.
 */
import { Schema } from "effect"
import { chains } from "../chain/Chains.ts"
import { form, natural, sequence, sha256, tenant, text, time } from "../Forms.ts"
import { sha256Hex } from "../Identifiers.ts"
import { parseJson } from "../json/Json.ts"
import { recordChecker } from "../json/RecordDecoder.ts"
import { RecordUnreadable } from "../json/RecordFields.ts"
import { MAC_HEADER } from "../records/RecordHeaders.ts"
import type { RecordMac } from "../records/RecordMac.ts"

export const BACKUP_FORMAT = "alk-backup-v1"

/** Name of the manifest in the folder of a backup. */
export const MANIFEST_FILE = "manifest.json"

/** Topics whose records are kept as they were written, one part after the other. */
export const appendedTopics = [
  "events",
  "traces",
  "checkpoints",
  "receipts",
  "commands",
  "quarantine"
] as const

/** Topics of which only the newest record of each key counts: these are kept whole. */
export const keyedTopics = ["state", "registry"] as const

/** The topics of a backup. `progress` is left out: it says what a store shows that is not there. */
export const backupTopics = [...appendedTopics, ...keyedTopics] as const
export type BackupTopic = (typeof backupTopics)[number]

export const isKeyed = (topic: BackupTopic): boolean => keyedTopics.some((keyed) => keyed === topic)

/** One file with records of one partition. */
export const BackupSegment = Schema.Struct({
  file: form(
    /^segments\/[a-z]+-[0-9]+-[0-9]+-[0-9]+-[0-9a-f]{64}$/u,
    "Path in the folder: topic, partition, from, to and hash."
  ),
  from: natural("The first offset that the file covers."),
  to: natural("Offset after the last one that it covers."),
  records: natural("Records in it; offsets without a record are none."),
  bytes: natural("Size of the file."),
  sha256: sha256("Of the file.")
})
export type BackupSegment = typeof BackupSegment.Type

/** What the backup holds of one partition. */
export const BackupPart = Schema.Struct({
  topic: Schema.Literals(backupTopics).annotate({ description: "Without its prefix." }),
  partition: natural("The partition."),
  from: natural("The first offset that is restored."),
  to: natural("Offset after the last one that is restored."),
  segments: Schema.Array(BackupSegment).annotate({ description: "In the order of their offsets." })
})
export type BackupPart = typeof BackupPart.Type

/** How far one chain reaches. */
export const BackupHead = Schema.Struct({
  tenant_id: tenant("Whose chain it is."),
  chain: Schema.Literals(chains).annotate({ description: "Which of the tenant's chains." }),
  partition: natural("Where it is."),
  sequence_number: sequence("Of the last record that the backup holds."),
  hash: sha256("Of that record.")
})
export type BackupHead = typeof BackupHead.Type

/** A file with a key. */
export const BackupKey = Schema.Struct({
  file: form(/^keys\/[a-z][a-z.-]*$/u, "Path in the folder."),
  bytes: natural("Size of the file."),
  sha256: sha256("Of the file.")
})
export type BackupKey = typeof BackupKey.Type

const members = {
  format: Schema.Literal(BACKUP_FORMAT).annotate({ description: "Version of the form." }),
  alk_version: text("Of the program that took it."),
  service_name: text("ALK_SERVICE_NAME: the first part of the names of all trees."),
  taken_at: time("When it was complete."),
  topic_prefix: text("The first part of the topics' names."),
  partitions: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
    description: "Of every topic but the registry."
  }),
  keys: Schema.Array(BackupKey).annotate({ description: "Empty where keys were left out." }),
  parts: Schema.Array(BackupPart).annotate({ description: "One for each partition of a topic." }),
  heads: Schema.Array(BackupHead).annotate({ description: "One for each chain." })
}

/** A manifest before it is written. */
const BackupContent = Schema.Struct(members)
export type BackupContent = typeof BackupContent.Type

export const BackupManifest = Schema.Struct({
  ...members,
  content_sha256: sha256("Of the JSON of all members before it, without white space."),
  mac: sha256(
    "HMAC-SHA256 of the same, under a key that is derived from the secret of the service."
  )
}).annotate({
  title: "Backup manifest",
  description: "What the folder of a backup holds, written by alk backup."
})
export type BackupManifest = typeof BackupManifest.Type

/** As if it were a record: no topic has this name. */
const asRecord = (content: BackupContent) => ({
  topic: MANIFEST_FILE,
  partition: 0,
  key: null,
  value: JSON.stringify(content),
  headers: {}
})

/** The text of the file. */
export const manifestText = (content: BackupContent, mac: RecordMac): string => {
  const record = asRecord(content)
  const members = { ...content, content_sha256: sha256Hex(record.value), mac: mac.of(record) }
  return `${JSON.stringify(members, null, 2)}\n`
}

/** True of a manifest, and so of what it names, that was written with the secret. */
export const isOfService = (
  { content_sha256: _, mac: given, ...content }: BackupManifest,
  mac: RecordMac
): boolean => mac.refusal({ ...asRecord(content), headers: { [MAC_HEADER]: given } }) === undefined

/** The service and the topics that a backup is of. */
export type BackupOrigin = Pick<BackupContent, "service_name" | "topic_prefix">

/** As if it were a record: no topic has a slash in its name. */
const segmentRecord = (file: string, { service_name, topic_prefix }: BackupOrigin) => ({
  topic: file,
  partition: 0,
  key: service_name,
  value: topic_prefix,
  headers: {}
})

/** The MAC of a file with a segment, whose path says what it holds, and with which hash. */
export const segmentMac = (file: string, origin: BackupOrigin, mac: RecordMac): string =>
  mac.of(segmentRecord(file, origin))

/** True of a file with a segment that was written with the secret. */
export const isSegmentOf = (
  file: string,
  given: string,
  origin: BackupOrigin,
  mac: RecordMac
): boolean => {
  const record = { ...segmentRecord(file, origin), headers: { [MAC_HEADER]: given } }
  return mac.refusal(record) === undefined
}

const check = recordChecker(BackupManifest, MANIFEST_FILE)

const parsed = (json: string): unknown => {
  try {
    return parseJson(json)
  } catch {
    throw new RecordUnreadable(`${MANIFEST_FILE} is no JSON: it is damaged`)
  }
}

/**
 * The manifest that a file is.
 * @throws RecordUnreadable if it is none, of a newer version, or changed since it was written
 */
export const readManifest = (json: string): BackupManifest => {
  const value = parsed(json)
  const { format } = (value ?? {}) as { readonly format?: unknown }
  if (typeof format === "string" && format !== BACKUP_FORMAT) {
    throw new RecordUnreadable(
      `${MANIFEST_FILE} has the format ${format}, this program reads ${BACKUP_FORMAT}`
    )
  }
  const manifest = check(value)
  const { content_sha256, mac: _, ...content } = manifest
  if (sha256Hex(JSON.stringify(content)) !== content_sha256) {
    throw new RecordUnreadable(`${MANIFEST_FILE} is not what was written: its hash differs`)
  }
  return manifest
}

/** The part of a partition, if the backup has one. */
export const partOf = (
  { parts }: Pick<BackupContent, "parts">,
  topic: BackupTopic,
  partition: number
): BackupPart | undefined =>
  parts.find((part) => part.topic === topic && part.partition === partition)
