/**
 * The contracts of `alk.registry`. The topic is compacted, the newest record of a key is what holds.
 */
import { form } from "../Forms.ts"
import { ApiKey, ShareLink, SigningKey, Tenant } from "../registry/RegistryEntry.ts"
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
    name: "registry-signing-key",
    title: "Signing key",
    description: "A public key that signs, or has signed, checkpoints.",
    key: form(/^signing_key\/[0-9a-f]{8}$/u, "`signing_key/<key_id>`"),
    value: SigningKey
  }
]

export const registryRecords: ReadonlyArray<RecordContract> = contracts.map((contract) => ({
  ...contract,
  topic: "registry",
  headers: macHeaders
}))
