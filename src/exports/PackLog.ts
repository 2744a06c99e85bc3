/**
 * Events, links and erasures of a pack that is being checked: read side by side, each recomputed
 * with the functions of the domain and held against its neighbours. Keeps no event, only what was
 * erased.
 */
import type { AuditEvent } from "../domain/AuditEvent.ts"
import { ERASURE_ACTION } from "../domain/Erasure.ts"
import { faultOf, GENESIS_HASH, linkHash, recompute, type Recomputed } from "../domain/HashChain.ts"
import {
  mismatch,
  packFiles,
  sequences,
  type PackFindings,
  type Wrongness
} from "./PackFindings.ts"
import { jsonOf, type PackFiles } from "./PackFiles.ts"
import { isFields, isSequence, type PackManifest } from "./PackManifest.ts"
import type { PackSeal } from "./PackSeal.ts"

/** One line of links.ndjson. */
interface PackLink {
  readonly sequence_number: number
  readonly created_at: string
  readonly content_hash: string
  readonly prev_hash: string
  readonly hash: string
}

const HEX = /^[0-9a-f]{64}$/u

/** The link of a line, if the line is the very text that a link is written as. */
const packLinkOf = (line: string | undefined): PackLink | undefined => {
  const value = jsonOf(line)
  if (!isFields(value)) return undefined
  const { content_hash, created_at, hash, prev_hash, sequence_number } = value
  const link = { sequence_number, created_at, content_hash, prev_hash, hash }
  const areTexts = [created_at, content_hash, prev_hash].every(
    (one) => typeof one === "string" && one.isWellFormed()
  )
  const isLink =
    areTexts && isSequence(sequence_number) && typeof hash === "string" && HEX.test(hash)
  return isLink && JSON.stringify(link) === line ? (link as PackLink) : undefined
}

const readEvent = (line: string | undefined): Recomputed | undefined => {
  const found = line === undefined ? undefined : recompute(line)
  return isSequence(found?.event.sequence_number) ? found : undefined
}

/** The last sequence number that stands in a line that is no event. */
const SAID_SEQUENCE = /"sequence_number":([0-9]{1,15})(?!.*"sequence_number":)/u

interface Erasure {
  readonly contentHash: string
  /** When it was chained; more than one if it was asked for twice. */
  readonly times: Array<string>
}

/** What is wrong with an event by itself, the first thing. */
const wrongnessOf = (
  found: Recomputed,
  tenantId: string,
  erasure: Erasure | undefined
): Wrongness | undefined => {
  const { event } = found
  if (event.tenant_id !== tenantId) return mismatch("tenant", tenantId, event.tenant_id)
  const mayBeGone = erasure !== undefined && erasure.contentHash === event.content_hash
  const fault = faultOf(found, undefined, mayBeGone)
  const isDetails = fault?.expected.startsWith("details_") === true
  const areGone = mayBeGone && found.detailsHash === undefined
  const isTimed = event.erased_at === undefined || erasure?.times.includes(event.erased_at) === true
  if (!isDetails && areGone && !isTimed) {
    return mismatch("erased_at", erasure.times[0], event.erased_at)
  }
  if (fault !== undefined) return fault
  return found.exact
    ? undefined
    : {
        reason: "content_mismatch",
        expected: "the bytes that the service writes for this event",
        actual: "the same event in other bytes, or with members that no hash covers"
      }
}

export class PackLog {
  events = 0
  links = 0
  erasedEvents = 0
  first: PackLink | undefined
  last: PackLink | undefined
  readonly #files: PackFiles
  readonly #found: PackFindings
  readonly #manifest: PackManifest
  readonly #seal: PackSeal
  /** By the sequence that was erased. */
  readonly #erasures = new Map<number, Erasure>()
  /** Erasure events whose place in the chain has not been seen, by their own sequence. */
  readonly #unplaced = new Map<number, { readonly target: number; readonly hash: string }>()

  constructor(files: PackFiles, found: PackFindings, manifest: PackManifest, seal: PackSeal) {
    this.#files = files
    this.#found = found
    this.#manifest = manifest
    this.#seal = seal
  }

  /** Events that were erased, as the chain says. */
  get erasures(): number {
    return this.#erasures.size
  }

  async readErasures(): Promise<void> {
    const { erasures } = packFiles
    const found = this.#found
    let previous = 0
    for await (const line of this.#files.lines(erasures)) {
      const read = readEvent(line)
      if (read === undefined) {
        const [expected, actual] = ["the JSON of an event", "bytes that are none"]
        found.problem(erasures, null, "content_mismatch", expected, actual)
        continue
      }
      const { event } = read
      const sequence = event.sequence_number
      const wrongness = wrongnessOf(read, this.#manifest.tenantId, undefined)
      const metadata: Readonly<Record<string, unknown>> = event.metadata ?? {}
      const { content_hash, sequence_number: target } = metadata
      const isErasure =
        event.action === ERASURE_ACTION &&
        isSequence(target) &&
        typeof content_hash === "string" &&
        target < sequence
      if (wrongness !== undefined) found.wrong(erasures, sequence, wrongness)
      else if (!isErasure) {
        const expected = "an erasure of an earlier event"
        found.problem(erasures, sequence, "content_mismatch", expected, event.action)
      } else if (sequence <= previous) {
        const expected = `a sequence above ${previous}`
        found.problem(erasures, sequence, "out_of_order", expected, `${sequence}`)
      } else {
        previous = sequence
        this.#erased(target, content_hash, event)
      }
    }
  }

  #erased(target: number, contentHash: string, event: AuditEvent): void {
    // Asked for twice, it was done the first time: either may be named.
    const before = this.#erasures.get(target)
    if (before === undefined) this.#erasures.set(target, { contentHash, times: [event.created_at] })
    else before.times.push(event.created_at)
    this.#unplaced.set(event.sequence_number, { target, hash: event.hash })
  }

  /** Erasures that the links do not reach: each needs a proof that a signed tree holds it. */
  async checkErasures(): Promise<void> {
    const found = this.#found
    const proven = new Set<number>()
    for await (const line of this.#files.lines(packFiles.proofs)) {
      const value = jsonOf(line)
      const proof = isFields(value) ? value["proof"] : undefined
      const isProof =
        isFields(value) &&
        Array.isArray(proof) &&
        proof.every((hash) => typeof hash === "string" && HEX.test(hash))
      if (!isProof) {
        const [expected, actual] = ["an inclusion proof", "something else"]
        found.problem(packFiles.proofs, null, "content_mismatch", expected, actual)
        continue
      }
      const { sequence_number, tree_size } = value
      const erasure = this.#unplaced.get(sequence_number as number)
      if (erasure === undefined || !HEX.test(erasure.hash)) continue
      const sequence = sequence_number as number
      if (this.#seal.proves(erasure.hash, sequence, tree_size, proof)) proven.add(sequence)
    }
    for (const [sequence, { target }] of this.#unplaced) {
      if (proven.has(sequence)) continue
      const holders = `neither ${packFiles.links} nor a signed checkpoint holds`
      const actual = `event ${sequence}, which ${holders}`
      const expected = "an erasure that is in the chain"
      found.problem(packFiles.erasures, target, "content_mismatch", expected, actual)
    }
  }

  /** The links one by one, each held against the one before it. */
  async *#checkedLinks(): AsyncGenerator<PackLink> {
    const { links: file } = packFiles
    const found = this.#found
    const seal = this.#seal
    const { first } = this.#manifest
    let expected = isSequence(first) ? first : seal.size + 1
    if (expected !== seal.size + 1 && seal.holds) {
      seal.broken(`the tree of ${expected - 1} events on the left`)
    }
    let previous: PackLink | undefined
    for await (const line of this.#files.lines(file)) {
      this.links += 1
      const link = packLinkOf(line)
      if (link === undefined) {
        const [wanted, actual] = ["the link of an event", "something else"]
        found.problem(file, expected, "content_mismatch", wanted, actual)
        seal.holds = false
        previous = undefined
        expected += 1
        continue
      }
      const sequence = link.sequence_number
      if (sequence > expected) {
        found.problem(file, expected, "sequence_gap", sequences(expected, sequence - 1), "none")
        seal.holds = false
      } else if (sequence < expected) {
        const reason = sequence === expected - 1 ? "duplicate_sequence" : "out_of_order"
        found.problem(file, sequence, reason, `sequence ${expected}`, `sequence ${sequence}`)
        seal.holds = false
        continue
      }
      this.#checkLink(link, previous)
      this.#place(link)
      previous = link
      expected = sequence + 1
      yield link
    }
  }

  #checkLink(link: PackLink, previous: PackLink | undefined): void {
    const sequence = link.sequence_number
    const isNext = previous?.sequence_number === sequence - 1
    const before = sequence === 1 ? GENESIS_HASH : isNext ? previous.hash : undefined
    const hash = linkHash({
      tenantId: this.#manifest.tenantId,
      sequenceNumber: sequence,
      createdAt: link.created_at,
      contentHash: link.content_hash,
      prevHash: link.prev_hash
    })
    const { links } = packFiles
    if (before !== undefined && link.prev_hash !== before) {
      this.#found.problem(links, sequence, "prev_hash_mismatch", before, link.prev_hash)
    } else if (link.hash !== hash) {
      this.#found.problem(links, sequence, "hash_mismatch", hash, link.hash)
    }
  }

  #place(link: PackLink): void {
    this.first ??= link
    this.last = link
    const sequence = link.sequence_number
    const erasure = this.#unplaced.get(sequence)
    this.#unplaced.delete(sequence)
    if (erasure !== undefined && erasure.hash !== link.hash) {
      this.#found.problem(
        packFiles.erasures,
        erasure.target,
        "content_mismatch",
        `an erasure in the chain, ${link.hash} at ${sequence}`,
        erasure.hash
      )
    }
    this.#seal.grow(link.hash)
  }

  /** Events and links side by side, both ascending. */
  async join(): Promise<void> {
    const links = this.#checkedLinks()
    const next = async () => {
      const step = await links.next()
      return step.done === true ? undefined : step.value
    }
    const { isComplete } = this.#manifest
    const found = this.#found
    const file = packFiles.events
    let link = await next()
    let previous = 0
    for await (const line of this.#files.lines(file)) {
      this.events += 1
      const read = readEvent(line)
      const place = this.#placeOf(line, read, link, previous)
      if (place !== undefined) {
        found.wrong(file, place.sequence, place.wrongness)
        previous = place.sequence
        while (link !== undefined && link.sequence_number <= previous) link = await next()
        continue
      }
      const sequence = read!.event.sequence_number
      if (sequence <= previous) {
        const reason = sequence === previous ? "duplicate_sequence" : "out_of_order"
        const expected = `a sequence above ${previous}`
        found.problem(file, sequence, reason, expected, `sequence ${sequence}`)
        continue
      }
      if (isComplete && link !== undefined && sequence > link.sequence_number) {
        const from = link.sequence_number
        found.problem(file, from, "sequence_gap", sequences(from, sequence - 1), "none")
      }
      while (link !== undefined && link.sequence_number < sequence) link = await next()
      previous = sequence
      const isLinked = link?.sequence_number === sequence
      this.#checkEvent(read!, isLinked ? link : undefined)
      if (isLinked) link = await next()
    }
    const tail = isComplete ? link?.sequence_number : undefined
    while (link !== undefined) link = await next()
    if (tail !== undefined) {
      const missing = sequences(tail, this.last!.sequence_number)
      found.problem(file, tail, "tail_missing", missing, "none")
    }
  }

  /** Where a line stands that is no event, or an event that says another place; else undefined. */
  #placeOf(
    line: string | undefined,
    read: Recomputed | undefined,
    link: PackLink | undefined,
    previous: number
  ): { readonly sequence: number; readonly wrongness: Wrongness } | undefined {
    const { isComplete } = this.#manifest
    if (read === undefined) {
      const said = Number(SAID_SEQUENCE.exec(line ?? "")?.[1])
      const guess = said > previous ? said : previous + 1
      const sequence = isComplete && link !== undefined ? link.sequence_number : guess
      const [expected, actual] = ["the JSON of an event", "bytes that are none"]
      return { sequence, wrongness: { reason: "content_mismatch", expected, actual } }
    }
    const { hash, prev_hash, sequence_number } = read.event
    const isRenumbered =
      isComplete &&
      link !== undefined &&
      sequence_number !== link.sequence_number &&
      (hash === link.hash || prev_hash === link.prev_hash)
    if (!isRenumbered) return undefined
    const sequence = link.sequence_number
    return { sequence, wrongness: mismatch("sequence", sequence, sequence_number) }
  }

  #checkEvent(read: Recomputed, link: PackLink | undefined): void {
    const { event } = read
    const { bounds, tenantId } = this.#manifest
    const sequence = event.sequence_number
    const bad = (reason: string, expected: string, actual: string) =>
      this.#found.problem(packFiles.events, sequence, reason, expected, actual)
    if (event.erased_at !== undefined) this.erasedEvents += 1
    if (link === undefined) return bad("hash_mismatch", `a link in ${packFiles.links}`, "none")
    if (event.prev_hash !== link.prev_hash) {
      return bad("prev_hash_mismatch", link.prev_hash, event.prev_hash)
    }
    const wrongness = wrongnessOf(read, tenantId, this.#erasures.get(sequence))
    if (wrongness !== undefined) {
      return this.#found.wrong(packFiles.events, sequence, wrongness)
    }
    const isLinked =
      event.hash === link.hash &&
      event.content_hash === link.content_hash &&
      event.created_at === link.created_at
    if (!isLinked) {
      return bad("hash_mismatch", `${link.hash}, as ${packFiles.links} says`, event.hash)
    }
    if (event.timestamp < bounds.from || event.timestamp > bounds.to) {
      bad("content_mismatch", "a timestamp within the bounds", event.timestamp)
    }
  }
}
