/**
 * The records of `alk.registry`: tenants, API keys and their use, share links, sessions of the
 * console, the public keys of checkpoints, the version of the data, the number of partitions, what
 * retention and deletion have left (RetentionEntry.ts), and the operations on them. They hold hashes of
 * secrets only; the secrets themselves are shown once and kept nowhere.
 */
import { Schema } from "effect"
import { PrunedPoint, treeOfPoint } from "../chain/PrunedPoint.ts"
import { type FilterField, type FilterValue, filterFields } from "../events/EventFields.ts"
import { form, natural, sequence, sha256, tenant, text, time } from "../Forms.ts"
import { recordDecoder } from "../json/RecordDecoder.ts"
import { RecordUnreadable } from "../json/RecordFields.ts"
import { Retention, retentionOperations, Tombstone } from "./RetentionEntry.ts"

export const scopes = ["read", "write"] as const
export type Scope = (typeof scopes)[number]

const ID = /^[A-Za-z0-9_-]+$/u
/** The partition and the offset of a command. */
export const QUARANTINE_ID = /^(0|[1-9][0-9]{0,4})-(0|[1-9][0-9]{0,15})$/u
const optional = Schema.optionalKey
const label = optional(Schema.String.annotate({ description: "For people." }))

export const Tenant = Schema.Struct({
  id: tenant("The tenant's id, for ever."),
  name: label,
  created_at: time("When it was created."),
  partitions: optional(
    sequence(
      "The number of partitions over which it was placed: its partition is murmur2 of its id modulo "
        + "this number, for ever. Absent: the first number of the installation."
    )
  )
}).annotate({ identifier: "Tenant" })
export type Tenant = typeof Tenant.Type

export const ApiKey = Schema.Struct({
  id: form(ID, "Names the key; not the key itself."),
  tenant_id: tenant("Whose key it is."),
  scopes: Schema.Array(Schema.Literals(scopes)),
  label,
  hint: text("The first characters of the key, enough to recognise it."),
  hash: sha256("SHA-256 of the whole key."),
  created_at: time("When it was created."),
  expires_at: optional(time("From when on it is invalid; absent: it does not expire.")),
  revoked_at: optional(time("From when on it is invalid."))
}).annotate({ identifier: "ApiKey" })
export type ApiKey = typeof ApiKey.Type

/**
 * When a key was last used. A record of its own: it is written often, the key's own once or twice, and
 * keys of the configuration have none.
 */
export const KeyUse = Schema.Struct({
  key_id: form(ID, "Id of the API key."),
  used_at: time("A use of the key; the last one is at most an hour later.")
}).annotate({ identifier: "KeyUse" })
export type KeyUse = typeof KeyUse.Type

/** Uses that one operation reports at most: 48 KB of a command. */
export const KEY_USES_MAX = 500

/** The conditions of a filter that ask for one value of a field. */
const exactConditions = Object.fromEntries(
  filterFields.map((field) => [
    field.filter.key,
    optional("values" in field ? Schema.Literals(field.values) : Schema.String)
  ])
) as {
  readonly [F in FilterField as F["filter"]["key"]]: Schema.optionalKey<
    Schema.Codec<FilterValue<F>>
  >
}

/** What EventFilter says. */
export const StoredFilter = Schema.Struct({
  ...exactConditions,
  actionPrefix: optional(Schema.String),
  from: optional(time("Inclusive bound on timestamp.")),
  to: optional(time("Inclusive bound on timestamp.")),
  fromSequence: optional(natural("Inclusive bound.")),
  toSequence: optional(natural("Inclusive bound.")),
  metadata: Schema.Array(Schema.Struct({ path: Schema.String, value: Schema.String })),
  q: optional(Schema.String),
  where: optional(Schema.String)
}).annotate({ identifier: "EventFilter", description: "Conditions, combined with AND." })

/** A link that lets its bearer fetch one document; what it covers was fixed when it was made. */
export const ShareLink = Schema.Struct({
  id: form(ID, "Names the link; not its token."),
  tenant_id: tenant("Whose events it shows."),
  label,
  filter: StoredFilter,
  hash: sha256("SHA-256 of the whole token."),
  created_by: text("Id of the API key that made it."),
  created_at: time("When it was made."),
  expires_at: time("From when on it is invalid."),
  max_uses: optional(sequence("How often it may be used.")),
  uses: natural("How often it was used."),
  last_used_at: optional(
    time(
      "When it was used last. Absent before the first use, and where a version wrote the record "
        + "that did not keep it."
    )
  ),
  revoked_at: optional(time("From when on it is invalid."))
}).annotate({ identifier: "ShareLink" })
export type ShareLink = typeof ShareLink.Type

/** A browser that was signed in with a key: it may do what the key may, for a while. */
export const Session = Schema.Struct({
  id: form(ID, "Names the session; not its token."),
  tenant_id: tenant("Whose events it shows; `_system` with the admin token."),
  key_id: text("Id of the API key that it acts for; `admin` for the admin token."),
  hash: sha256("SHA-256 of the whole token, a full stop and the SHA-256 of the key in hex."),
  created_at: time("When somebody signed in."),
  expires_at: time("From when on it is invalid."),
  ended_at: optional(time("When somebody signed out."))
}).annotate({ identifier: "Session" })
export type Session = typeof Session.Type

/** A public key that signs, or has signed, checkpoints. */
export const SigningKey = Schema.Struct({
  key_id: form(/^[0-9a-f]{8}$/u, "As C2SP derives it from name and key."),
  vkey: text("The public key as C2SP writes it."),
  public_key: form(/^[A-Za-z0-9+/]+={0,2}$/u, "Base64 of the 32 bytes of the Ed25519 public key."),
  added_at: time("When it was published."),
  root: optional(
    Schema.Boolean.annotate({
      description:
        "True for the first key of the service, which needs no endorsement. Absent where a "
        + "version without endorsements has written it."
    })
  ),
  endorsement: optional(
    text(
      "Statement of the key before it, a C2SP signed note: alk-key-endorsement-v1, service, key "
        + "id, this vkey, time; one a line."
    )
  )
}).annotate({ identifier: "SigningKey" })
export type SigningKey = typeof SigningKey.Type

/**
 * The version of what is written to the topics. Raised by a change that earlier programs would
 * misread or pass over: they don't start on data of a later version.
 */
export const DATA_VERSION = 2

/** The version of what is written as long as no partitions were added. */
export const FIRST_DATA_VERSION = 1

/** The id of the only record of its kind. */
export const DATA_VERSION_ID = "topics" as const

/** The latest version that a program has written, or may have written, to the topics. */
export const DataVersion = Schema.Struct({
  id: Schema.Literal(DATA_VERSION_ID),
  version: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
    description: "A program that knows only lower ones does not start."
  }),
  program: text("The version of alk that came with it."),
  noted_at: time("When its first API process started.")
}).annotate({ identifier: "DataVersion" })
export type DataVersion = typeof DataVersion.Type

/** What an administrator has done with a command in quarantine: once, for ever. */
export const QuarantineAct = Schema.Struct({
  id: form(QUARANTINE_ID, "`<partition>-<offset>` of the command on alk.commands."),
  state: Schema.Literals(["replayed", "dropped"]).annotate({
    description: "replayed: it was submitted again. dropped: it is done with."
  }),
  settled_at: time("When that was decided."),
  settled_by: text("Id of the key that asked for it; `admin` for the admin token."),
  reason: optional(text("Why, in the words of who asked for it."))
}).annotate({ identifier: "QuarantineAct" })
export type QuarantineAct = typeof QuarantineAct.Type

/** Partitions of one topic at most. */
export const PARTITIONS_MAX = 1_024

const partitionCount = (description: string) =>
  Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: PARTITIONS_MAX })).annotate({
    description
  })

/** The id of the only record of its kind. */
export const PARTITIONS_ID = "topics" as const

/** How many partitions the topics have, and had; absent in an installation that has never grown. */
export const Partitions = Schema.Struct({
  id: Schema.Literal(PARTITIONS_ID),
  counts: Schema.Array(partitionCount("A number of partitions over which new tenants were spread."))
    .check(Schema.isMinLength(1))
    .annotate({
      description: "In their order: the first is that of tenants without one, the last that of now."
    }),
  topics: partitionCount("Partitions that each topic but alk.registry has."),
  growing_to: optional(partitionCount("Partitions that the topics are getting.")),
  changed_at: time("When that was written.")
}).annotate({ identifier: "Partitions" })
export type Partitions = typeof Partitions.Type

/** The steps of a growth, in their order. */
export const growthSteps = ["begin", "open", "spread"] as const
export type GrowthStep = (typeof growthSteps)[number]

export const RegistryOperation = Schema.Union([
  Schema.Struct({
    op: Schema.Literal("grow_partitions"),
    step: Schema.Literals(growthSteps).annotate({
      description:
        "begin: the topics are getting more. open: they have them. spread: new tenants get them."
    }),
    from: partitionCount("Partitions that the topics had, where nothing was written down before."),
    to: partitionCount("Partitions that the topics get."),
    changed_at: time("When the step was made."),
    data_version: DataVersion.annotateKey({
      description: "Of a topic that has grown: earlier programs would look for tenants elsewhere."
    })
  }),
  ...retentionOperations,
  Schema.Struct({ op: Schema.Literal("settle_quarantined"), quarantine_act: QuarantineAct }),
  Schema.Struct({ op: Schema.Literal("note_data_version"), data_version: DataVersion }),
  Schema.Struct({ op: Schema.Literal("create_link"), link: ShareLink }),
  Schema.Struct({
    op: Schema.Literal("revoke_link"),
    tenant_id: tenant("Whose link it is."),
    link_id: text("Id of the link."),
    revoked_at: time("From when on it is invalid.")
  }),
  Schema.Struct({
    op: Schema.Literal("use_link"),
    tenant_id: tenant("Whose link it is."),
    link_id: text("Id of the link."),
    used_at: time("When it was used; decides whether it has expired.")
  }),
  Schema.Struct({ op: Schema.Literal("create_session"), session: Session }),
  Schema.Struct({
    op: Schema.Literal("end_session"),
    session_id: text("Id of the session."),
    ended_at: time("From when on it is invalid.")
  }),
  Schema.Struct({ op: Schema.Literal("add_signing_key"), signing_key: SigningKey }),
  Schema.Struct({
    op: Schema.Literal("create_tenant"),
    tenant: Tenant,
    spread: optional(Schema.Boolean).annotateKey({
      description: "True for one that has no records: it may be put in any partition."
    })
  }),
  Schema.Struct({
    op: Schema.Literal("create_key"),
    key: ApiKey,
    tenant: optional(Tenant).annotateKey({
      description: "A tenant that the configuration knows and the registry may not know yet."
    })
  }),
  Schema.Struct({
    op: Schema.Literal("revoke_key"),
    tenant_id: tenant("Whose key it is."),
    key_id: text("Id of the key."),
    revoked_at: time("From when on it is invalid."),
    key: optional(ApiKey).annotateKey({
      description: "A key from the configuration, which the registry has never seen."
    })
  }),
  Schema.Struct({
    op: Schema.Literal("use_keys"),
    uses: Schema.Array(KeyUse).check(Schema.isMaxLength(KEY_USES_MAX))
  })
]).annotate({ description: "The operation of a command of the kind registry." })
export type RegistryOperation = typeof RegistryOperation.Type

/** Records of `alk.registry`: key `<kind>/<id>`, value the JSON of what the kind names. */
export type RegistryEntry =
  | { readonly kind: "tenant"; readonly tenant: Tenant }
  | { readonly kind: "key"; readonly key: ApiKey }
  | { readonly kind: "key_use"; readonly key_use: KeyUse }
  | { readonly kind: "link"; readonly link: ShareLink }
  | { readonly kind: "session"; readonly session: Session }
  | { readonly kind: "signing_key"; readonly signing_key: SigningKey }
  | { readonly kind: "quarantine_act"; readonly quarantine_act: QuarantineAct }
  | { readonly kind: "data_version"; readonly data_version: DataVersion }
  | { readonly kind: "partitions"; readonly partitions: Partitions }
  | { readonly kind: "retention"; readonly retention: Retention }
  | { readonly kind: "pruned"; readonly pruned: PrunedPoint }
  | { readonly kind: "tombstone"; readonly tombstone: Tombstone }

const entityOf = (
  entry: RegistryEntry
):
  | Tenant
  | ApiKey
  | KeyUse
  | ShareLink
  | Session
  | SigningKey
  | QuarantineAct
  | DataVersion
  | Partitions
  | Retention
  | PrunedPoint
  | Tombstone => {
  switch (entry.kind) {
    case "tenant":
      return entry.tenant
    case "key":
      return entry.key
    case "key_use":
      return entry.key_use
    case "link":
      return entry.link
    case "session":
      return entry.session
    case "signing_key":
      return entry.signing_key
    case "quarantine_act":
      return entry.quarantine_act
    case "data_version":
      return entry.data_version
    case "partitions":
      return entry.partitions
    case "retention":
      return entry.retention
    case "pruned":
      return entry.pruned
    case "tombstone":
      return entry.tombstone
  }
}

/** By the kind: a newer version may have added a member `key_id` to any of the others. */
const idOf = (entry: RegistryEntry): string => {
  switch (entry.kind) {
    case "tenant":
      return entry.tenant.id
    case "key":
      return entry.key.id
    case "key_use":
      return entry.key_use.key_id
    case "link":
      return entry.link.id
    case "session":
      return entry.session.id
    case "signing_key":
      return entry.signing_key.key_id
    case "quarantine_act":
      return entry.quarantine_act.id
    case "data_version":
      return entry.data_version.id
    case "partitions":
      return entry.partitions.id
    case "retention":
      return entry.retention.tenant_id
    case "pruned":
      return treeOfPoint(entry.pruned)
    case "tombstone":
      return entry.tombstone.tenant_id
  }
}

export const registryKey = (entry: RegistryEntry): string => `${entry.kind}/${idOf(entry)}`

/** The JSON of an entry. */
export const registryValue = (entry: RegistryEntry): string => JSON.stringify(entityOf(entry))

/** What removes an entry: a record without a value. */
export interface RegistryRemoval {
  readonly kind: "removed"
  /** Key of the entry's record. */
  readonly key: string
}

export type RegistryChange = RegistryEntry | RegistryRemoval

/** The key and the value of the record that a change is. */
export const registryRecord = (
  change: RegistryChange
): { readonly key: string; readonly value: string | null } =>
  change.kind === "removed"
    ? { key: change.key, value: null }
    : { key: registryKey(change), value: registryValue(change) }

const readers = {
  tenant: recordDecoder(Tenant, "tenant"),
  key: recordDecoder(ApiKey, "key"),
  key_use: recordDecoder(KeyUse, "key_use"),
  link: recordDecoder(ShareLink, "link"),
  session: recordDecoder(Session, "session"),
  signing_key: recordDecoder(SigningKey, "signing_key"),
  quarantine_act: recordDecoder(QuarantineAct, "quarantine_act"),
  data_version: recordDecoder(DataVersion, "data_version"),
  partitions: recordDecoder(Partitions, "partitions"),
  retention: recordDecoder(Retention, "retention"),
  pruned: recordDecoder(PrunedPoint, "pruned"),
  tombstone: recordDecoder(Tombstone, "tombstone")
}

/** The members that name a record, where that is not `id`. */
const NAMES: Partial<Record<keyof typeof readers, string>> = {
  signing_key: "key_id",
  key_use: "key_id",
  retention: "tenant_id",
  pruned: "tenant_id and chain",
  tombstone: "tenant_id"
}
const isKind = (kind: string): kind is keyof typeof readers => Object.hasOwn(readers, kind)

/**
 * What a record of `alk.registry` changes; undefined for kinds of newer versions.
 * @throws RecordUnreadable for what no version has written
 */
export const readRegistryRecord = (
  key: Buffer | null,
  value: Buffer | null
): RegistryChange | undefined => {
  const name = key?.toString() ?? ""
  const at = name.indexOf("/")
  if (at <= 0) throw new RecordUnreadable("its key is not <kind>/<id>")
  const kind = name.slice(0, at)
  if (!isKind(kind)) return undefined
  if (value === null) return { kind: "removed", key: name }
  const entry = { kind, [kind]: readers[kind](value) } as unknown as RegistryEntry
  if (registryKey(entry) === name) return entry
  const id = NAMES[kind] ?? "id"
  throw new RecordUnreadable(`${kind}: ${id} is not that of its record's key`)
}
