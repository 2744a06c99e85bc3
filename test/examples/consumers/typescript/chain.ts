/**
 * Checks the chains of audit events, record after record as they come from `alk.events`: form,
 * hashes, sequence and links. Needs nothing but Node, and knows nothing of Kafka.
 */
import { hash } from "node:crypto"

const text = (name: string): string => `"(?<${name}>(?:[^"\\\\]|\\\\.)*)"`

/**
 * The one form in which events are stored. Its parts are canonical JSON (RFC 8785) already, so
 * hashes are taken of the text as it is, and nothing has to be parsed or written anew.
 */
const STORED_FORM = new RegExp(
  `^\\{"id":${text("id")},"timestamp":${text("timestamp")}`
    + `,"actor":\\{"id":${text("actorId")},"type":${text("actorType")}(?:,"email":${text("email")})?\\}`
    + `,"action":${text("action")}`
    + `,"resource":\\{"id":${text("resourceId")},"type":${text("resourceType")}(?:,"name":${text("name")})?\\}`
    + `,"outcome":${text("outcome")}(?:,"metadata":(?<metadata>\\{.*\\}))?`
    + `,"tenant_id":${text("tenant")},"sequence_number":(?<sequence>[1-9][0-9]*)`
    + `,"created_at":${text("createdAt")},"prev_hash":${text("prevHash")}`
    + `(?:,"details_salt":${text("salt")},"details_hash":${text("detailsHash")})?`
    + `,"content_hash":${text("contentHash")},"hash":${text("hash")}\\}$`,
  "s"
)

const FIRST_PREV_HASH = "0".repeat(64)
const SHOWN_CHARACTERS = 80

const sha256 = (value: string): string => hash("sha256", value, "hex")

type Event = Readonly<Record<string, string | undefined>>

/** Hash of what may be erased elsewhere: e-mail, metadata, name of the resource. */
const detailsHashOf = ({ email, metadata, name, salt }: Event): string | undefined => {
  const details = [
    ...(email === undefined ? [] : [`"actor_email":"${email}"`]),
    ...(metadata === undefined ? [] : [`"metadata":${metadata}`]),
    ...(name === undefined ? [] : [`"resource_name":"${name}"`])
  ]
  return details.length === 0 ? undefined : sha256(`${salt ?? ""}\n{${details.join()}}`)
}

const contentHashOf = (event: Event): string => {
  const { action, actorId, actorType, detailsHash, id, outcome, resourceId, resourceType } = event
  return sha256(
    `{"action":"${action}","actor":{"id":"${actorId}","type":"${actorType}"}`
      + (detailsHash === undefined ? "" : `,"details_hash":"${detailsHash}"`)
      + `,"id":"${id}","outcome":"${outcome}"`
      + `,"resource":{"id":"${resourceId}","type":"${resourceType}"}`
      + `,"timestamp":"${event["timestamp"]}"}`
  )
}

const linkHashOf = ({ contentHash, createdAt, prevHash, sequence, tenant }: Event): string =>
  sha256(["alk-chain-v1", tenant, sequence, createdAt, contentHash, prevHash].join("\n"))

/** What a member is, and what it has to be. */
type Expectation = readonly [member: string, found: unknown, expected: unknown]

export class ChainCheck {
  /** Of each tenant the last event: where the next one has to follow. */
  readonly #heads = new Map<string, { readonly sequence: number; readonly hash: string }>()
  readonly #isPartial: boolean
  #events = 0
  #breaks = 0

  /** `isPartial`: the topic has lost its beginning, so a tenant may begin at any number. */
  constructor(isPartial: boolean) {
    this.#isPartial = isPartial
  }

  /** Takes the next record of a partition; prints a line if it breaks its chain. */
  take(partition: number, offset: string, key: string, value: string): void {
    this.#events += 1
    const place = `partition ${partition} offset ${offset}`
    const event: Event | undefined = STORED_FORM.exec(value)?.groups
    if (event === undefined) {
      const found = JSON.stringify(value.slice(0, SHOWN_CHARACTERS))
      this.#report(
        `tenant ${key} sequence ? (${place}): record is ${found}, expected a stored event`
      )
      return
    }
    const { action, metadata, sequence, tenant } = event
    const wrong = this.#expectations(event).find(([, found, expected]) => found !== expected)
    if (wrong !== undefined) {
      const [member, found, expected] = wrong
      this.#report(
        `tenant ${tenant} sequence ${sequence} (${place}):`
          + ` ${member} is ${found ?? "absent"}, expected ${expected ?? "none"}`
      )
    } else if (action === "alk.event.erased") {
      // The topic keeps the details; whoever has copied them has to delete them.
      const erased = /"sequence_number":([0-9]+)/.exec(metadata ?? "")?.[1]
      console.log(
        `erased: tenant ${tenant} sequence ${erased}: delete its details from your copies`
      )
    }
    this.#heads.set(tenant!, { sequence: Number(sequence), hash: event["hash"]! })
  }

  #expectations(event: Event): ReadonlyArray<Expectation> {
    const head = this.#heads.get(event["tenant"]!)
    const sequence = Number(event["sequence"])
    const isStart = head === undefined && this.#isPartial
    const next = head?.sequence ?? 0
    return [
      ["details_hash", event["detailsHash"], detailsHashOf(event)],
      ["content_hash", event["contentHash"], contentHashOf(event)],
      ["sequence_number", sequence, isStart ? sequence : next + 1],
      ["prev_hash", event["prevHash"], this.#prevHash(event, isStart)],
      ["hash", event["hash"], linkHashOf(event)]
    ]
  }

  #prevHash(event: Event, isStart: boolean): string | undefined {
    if (isStart && event["sequence"] !== "1") return event["prevHash"]
    return this.#heads.get(event["tenant"]!)?.hash ?? FIRST_PREV_HASH
  }

  #report(what: string): void {
    this.#breaks += 1
    console.log(`broken: ${what}`)
  }

  /** Prints what was found in all; the exit code, 1 after a break. */
  finish(): number {
    const seen = `${this.#events} events of ${this.#heads.size} tenants`
    console.log(
      this.#breaks === 0 ? `intact: ${seen}` : `broken: ${this.#breaks} breaks in ${seen}`
    )
    return this.#breaks === 0 ? 0 : 1
  }
}
