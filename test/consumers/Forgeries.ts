/**
 * What is done to the chains of a copied topic: one forgery for each tenant, in the middle of its
 * chain, and where a consumer has to find it. Shares no code with alk.
 */
import { hash } from "node:crypto"
import canonicalize from "canonicalize"

/** Where a break has to be named: the sequence number (? for no stored event) and the member. */
export type Found = readonly [sequence: number | "?", member: string]

export interface Forgery {
  readonly tenant: string
  /** What stands on the topic instead of the record with sequence number AT. */
  readonly forge: (value: string) => ReadonlyArray<string>
  readonly found: ReadonlyArray<Found>
}

/** The record that is forged: in the middle of twelve. */
export const AT = 5

const sha256 = (text: string): string => hash("sha256", text, "hex")

/** Content and hash recomputed, as somebody who knows the rules would. */
const rehashed = (value: string): string => {
  const event = JSON.parse(value)
  const { action, details_hash, id, outcome, timestamp } = event
  const [actor, resource] = [event.actor, event.resource].map(({ id, type }) => ({ id, type }))
  const core = { action, actor, details_hash, id, outcome, resource, timestamp }
  const contentHash = sha256(canonicalize(core)!)
  const { created_at, prev_hash, sequence_number, tenant_id } = event
  const link = ["alk-chain-v1", tenant_id, sequence_number, created_at, contentHash, prev_hash]
  return value.replace(event.content_hash, contentHash).replace(event.hash, sha256(link.join("\n")))
}

const otherOutcome = (value: string): string =>
  value.replace('"outcome":"success"', '"outcome":"failure"')

const withoutDetails = (value: string): string =>
  value
    .replace(/,"email":"(?:[^"\\]|\\.)*"\}/, "}")
    .replace(/,"name":"(?:[^"\\]|\\.)*"\}/, "}")
    .replace(/,"metadata":.*(?=,"tenant_id")/s, "")

export const forgeries: ReadonlyArray<Forgery> = [
  {
    tenant: "f-outcome",
    forge: (value) => [otherOutcome(value)],
    found: [[AT, "content_hash"]]
  },
  {
    tenant: "f-rehashed",
    forge: (value) => [rehashed(otherOutcome(value))],
    found: [[AT + 1, "prev_hash"]]
  },
  {
    tenant: "f-metadata",
    forge: (value) => [value.replace('"amount":', '"Amount":')],
    found: [[AT, "details_hash"]]
  },
  {
    tenant: "f-email",
    forge: (value) => [value.replace("@example.com", "@example.org")],
    found: [[AT, "details_hash"]]
  },
  {
    tenant: "f-emptied",
    forge: (value) => [withoutDetails(value)],
    found: [[AT, "details_hash"]]
  },
  {
    tenant: "f-time",
    forge: (value) => [value.replace('"created_at":"2', '"created_at":"3')],
    found: [[AT, "hash"]]
  },
  { tenant: "f-removed", forge: () => [], found: [[AT + 1, "sequence_number"]] },
  {
    tenant: "f-repeated",
    forge: (value) => [value, value],
    found: [[AT, "sequence_number"]]
  },
  {
    // A member that no hash covers: the record is no stored event, and its place is empty.
    tenant: "f-member",
    forge: (value) => [value.replace(',"tenant_id":', ',"note":"approved","tenant_id":')],
    found: [
      ["?", "record"],
      [AT + 1, "sequence_number"]
    ]
  },
  {
    tenant: "f-spaces",
    forge: (value) => [JSON.stringify(JSON.parse(value), null, 1).replaceAll("\n", "")],
    found: [
      ["?", "record"],
      [AT + 1, "sequence_number"]
    ]
  }
]
