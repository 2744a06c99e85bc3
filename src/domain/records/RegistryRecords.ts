/**
 * The contracts of `alk.registry`. The newest record of a key is what holds.
 */
import { Schema } from "effect"
import { PrunedPoint } from "../chain/PrunedPoint.ts"
import { form } from "../Forms.ts"
import { CONTENT_KEY, StoredContent } from "../registry/RegistryContent.ts"
import {
  ApiKey,
  DataVersion,
  KeyUse,
  Partitions,
  QuarantineAct,
  Session,
  ShareLink,
  SigningKey,
  Tenant
} from "../registry/RegistryEntry.ts"
import { Retention, Tombstone } from "../registry/RetentionEntry.ts"
import type { RecordContract } from "./RecordContract.ts"
import { macHeaders } from "./RecordHeaders.ts"

const contracts: ReadonlyArray<Omit<RecordContract, "topic" | "headers">> = [
  {
    name: "registry-tenant",
    title: "Tenant",
    description: "A tenant. Written by the sequencer of the tenant _system only.",
    key: form(/^tenant\/[a-z0-9][a-z0-9_-]{0,62}$/u, "`tenant/<id>`"),
    value: Tenant
  },
  {
    name: "registry-api-key",
    title: "API key",
    description:
      "An API key: what it may do, and the hash that it is recognised by. Written by the sequencer "
      + "of the tenant _system only; a revoked key is kept with revoked_at.",
    key: form(/^key\/[A-Za-z0-9_-]+$/u, "`key/<id>`"),
    value: ApiKey
  },
  {
    name: "registry-key-use",
    title: "Use of an API key",
    description:
      "When an API key was last used, up to an hour late. Written by the sequencer of the tenant "
      + "_system only, at most once an hour and process for each key that is used.",
    key: form(/^key_use\/[A-Za-z0-9_-]+$/u, "`key_use/<key_id>`"),
    value: KeyUse
  },
  {
    name: "registry-share-link",
    title: "Share link",
    description:
      "A link that lets its bearer fetch one document; its scope was fixed when it was made. "
      + "Written by the sequencer of the tenant _system only. Some time after its end a record "
      + "without a value removes it.",
    key: form(/^link\/[A-Za-z0-9_-]+$/u, "`link/<id>`"),
    value: ShareLink
  },
  {
    name: "registry-session",
    title: "Session",
    description:
      "A browser that somebody has signed in with a key, which it acts for. Written by the "
      + "sequencer of the tenant _system only. A day after its end a record without a value removes "
      + "it.",
    key: form(/^session\/[A-Za-z0-9_-]+$/u, "`session/<id>`"),
    value: Session
  },
  {
    name: "registry-signing-key",
    title: "Signing key",
    description: "A public key that signs, or has signed, checkpoints.",
    key: form(/^signing_key\/[0-9a-f]{8}$/u, "`signing_key/<key_id>`"),
    value: SigningKey
  },
  {
    name: "registry-quarantine-act",
    title: "Settled command in quarantine",
    description:
      "What an administrator has done with a command of alk.quarantine. Written by the sequencer of "
      + "the tenant _system only, once for a command.",
    key: form(/^quarantine_act\/[0-9]+-[0-9]+$/u, "`quarantine_act/<partition>-<offset>`"),
    value: QuarantineAct
  },
  {
    name: "registry-data-version",
    title: "Version of the data",
    description:
      "The latest version of alk's data that may be on the topics; programs that don't know it don't "
      + "start. Written by the sequencer of the tenant _system only.",
    key: form(/^data_version\/topics$/u, "`data_version/topics`"),
    value: DataVersion
  },
  {
    name: "registry-partitions",
    title: "Number of partitions",
    description:
      "How many partitions the topics have and had, once they have got more: a tenant stays in the "
      + "partition that it had. Written by the sequencer of the tenant _system only.",
    key: form(/^partitions\/topics$/u, "`partitions/topics`"),
    value: Partitions
  },
  {
    name: "registry-retention",
    title: "Retention",
    description:
      "How long the records of a tenant are kept, and whether a legal hold forbids to remove any. "
      + "Written by the sequencer of the tenant _system only; a record without a value removes it "
      + "when the tenant is deleted.",
    key: form(/^retention\/[a-z0-9][a-z0-9_-]{0,62}$/u, "`retention/<tenant>`"),
    value: Retention
  },
  {
    name: "registry-pruned",
    title: "Pruned point",
    description:
      "Up to where the records of a chain were removed, with what proves it. Written by the sequencer "
      + "of the tenant _system only, once when it is decided and once when the rows are gone.",
    key: form(
      /^pruned\/[a-z0-9][a-z0-9_-]{0,62}(?:\/traces)?$/u,
      "`pruned/<tenant>`, of trace facts `pruned/<tenant>/traces`"
    ),
    value: PrunedPoint
  },
  {
    name: "registry-tombstone",
    title: "Tombstone",
    description:
      "What is left of a deleted tenant. Written by the sequencer of the tenant _system only; kept "
      + "for ever.",
    key: form(/^tombstone\/[a-z0-9][a-z0-9_-]{0,62}$/u, "`tombstone/<tenant>`"),
    value: Tombstone
  },
  {
    name: "registry-content",
    title: "Content",
    description:
      "What the newest records of all other keys add up to: the last record of every transaction that "
      + "changes the registry. A process that finds another sum at its start refuses to start: records are gone.",
    key: Schema.Literal(CONTENT_KEY),
    value: StoredContent
  }
]

export const registryRecords: ReadonlyArray<RecordContract> = contracts.map((contract) => ({
  ...contract,
  topic: "registry",
  headers: macHeaders
}))
