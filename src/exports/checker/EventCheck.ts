/** The events of a pack, and what was erased of them, against the chain. */
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { ERASURE_ACTION } from "../../domain/events/Erasure.ts"
import { isObject } from "../../domain/json/Json.ts"
import { type ErasureOfEvent, eventFault, eventOf, referencesOf, saidSequence } from "./Events.ts"
import { wrong } from "./Findings.ts"
import { joinRecords } from "./Joined.ts"
import { isHash, isSequence, jsonOf } from "./Lines.ts"
import { type Manifest, type Scope, scopeOf } from "./Manifest.ts"
import type { OpenPack } from "./OpenPack.ts"
import type { Link, PackChain } from "./PackChain.ts"
import { FILE } from "./PackFiles.ts"
import { isIncluded } from "./Tree.ts"

export class EventCheck {
  readonly #pack: OpenPack
  readonly #manifest: Manifest
  readonly #scope: Scope
  readonly #chain: PackChain
  /** What was erased, by the sequence that was. */
  readonly #erasures = new Map<number, ErasureOfEvent>()
  /** Erasures that the links have not reached, and what they name, by their own sequence. */
  readonly #outside = new Map<number, { readonly target: number; readonly hash: string }>()
  /** Size of the largest tree that proves an erasure. */
  proving = 0
  /** Lines of its file, and those of them that say they were erased. */
  events = 0
  erased = 0
  /** Values that metadata refers to. */
  readonly references = new Set<string>()

  constructor(pack: OpenPack, manifest: Manifest, chain: PackChain) {
    this.#pack = pack
    this.#manifest = manifest
    this.#scope = scopeOf(manifest)
    this.#chain = chain
    chain.onLink = (link) => this.#placeErasure(link)
  }

  /** Sequences of events that an erasure names. */
  get targets(): number {
    return this.#erasures.size
  }

  #placeErasure(link: Link): void {
    const erasure = this.#outside.get(link.sequence_number)
    if (erasure === undefined) return
    this.#outside.delete(link.sequence_number)
    if (erasure.hash !== link.hash) {
      const expected = `an erasure in the chain, ${link.hash} at ${link.sequence_number}`
      this.#pack.found.mismatch(FILE.erasures, erasure.target, expected, erasure.hash)
    }
  }

  async readErasures(): Promise<void> {
    const { found } = this.#pack
    let previous = 0
    for await (const line of this.#pack.lines(FILE.erasures)) {
      const event = line === undefined ? undefined : eventOf(line)
      if (line === undefined || event === undefined) {
        found.mismatch(FILE.erasures, null, "the JSON of an event", "bytes that are none")
        continue
      }
      const sequence = event.sequence_number
      const wrongness = eventFault(line, event, this.#manifest.tenant_id)
      const { content_hash: contentHash, sequence_number: target } = (event.metadata ?? {}) as {
        readonly [name: string]: unknown
      }
      const isOfEarlier =
        event.action === ERASURE_ACTION
        && isSequence(target)
        && target < sequence
        && typeof contentHash === "string"
      if (wrongness !== undefined) found.fault(FILE.erasures, sequence, wrongness)
      else if (!isOfEarlier) {
        found.mismatch(FILE.erasures, sequence, "an erasure of an earlier event", event.action)
      } else if (sequence <= previous) {
        const expected = `a sequence above ${previous}`
        found.problem(FILE.erasures, sequence, "out_of_order", expected, `${sequence}`)
      } else {
        previous = sequence
        // Asked for twice, it was done the first time: either may be named.
        const before = this.#erasures.get(target)
        if (before !== undefined) before.times.push(event.created_at)
        else this.#erasures.set(target, { contentHash, times: [event.created_at] })
        this.#outside.set(sequence, { target, hash: event.hash })
      }
    }
  }

  async join(): Promise<void> {
    this.events = await joinRecords({
      found: this.#pack.found,
      file: FILE.events,
      lines: this.#pack.lines(FILE.events),
      chain: this.#chain,
      isComplete: this.#scope.isComplete,
      read: eventOf,
      sequenceOf: (event) => event.sequence_number,
      saidIn: saidSequence,
      renumbered: (event, { hash, prev_hash, sequence_number }) =>
        event.hash === hash || event.prev_hash === prev_hash
          ? wrong("sequence", sequence_number, event.sequence_number)
          : undefined,
      take: (line, event, link) => this.#take(line, event, link)
    })
  }

  #take(line: string, event: AuditEvent, link: Link | undefined): void {
    const { found } = this.#pack
    const sequence = event.sequence_number
    if (event.erased_at !== undefined) this.erased += 1
    for (const reference of referencesOf(event.metadata)) this.references.add(reference)
    if (link === undefined) {
      found.problem(FILE.events, sequence, "hash_mismatch", `a link in ${FILE.links}`, "none")
      return
    }
    if (event.prev_hash !== link.prev_hash) {
      found.problem(FILE.events, sequence, "prev_hash_mismatch", link.prev_hash, event.prev_hash)
      return
    }
    const { bounds, tenant_id: tenant } = this.#manifest
    const wrongness = eventFault(line, event, tenant, this.#erasures.get(sequence))
    const isLinks =
      event.hash === link.hash
      && event.content_hash === link.content_hash
      && event.created_at === link.created_at
    if (wrongness !== undefined) found.fault(FILE.events, sequence, wrongness)
    else if (!isLinks) {
      found.problem(
        FILE.events,
        sequence,
        "hash_mismatch",
        `${link.hash}, as ${FILE.links} says`,
        event.hash
      )
    } else if (event.timestamp < bounds.from || event.timestamp > bounds.to) {
      found.mismatch(FILE.events, sequence, "a timestamp within the bounds", event.timestamp)
    }
  }

  /**
   * Erasures that the links do not reach: each needs a proof that a tree holds it whose root was
   * signed and is that of the links.
   */
  async checkOutside(): Promise<void> {
    const proven = await this.#readProofs()
    for (const [sequence, { target }] of this.#outside) {
      if (proven.has(sequence)) continue
      this.#pack.found.mismatch(
        FILE.erasures,
        target,
        "an erasure that is in the chain",
        `event ${sequence}, which neither ${FILE.links} nor a signed tree of them holds`
      )
    }
  }

  /** Sequences of erasures that a signed tree holds. */
  async #readProofs(): Promise<ReadonlySet<unknown>> {
    const proven = new Set<unknown>()
    for await (const line of this.#pack.lines(FILE.proofs)) {
      const said = line === undefined ? undefined : jsonOf(line)
      const { proof, sequence_number: sequence, tree_size: size } = isObject(said) ? said : {}
      if (!Array.isArray(proof) || !proof.every(isHash)) {
        this.#pack.found.mismatch(FILE.proofs, null, "an inclusion proof")
        continue
      }
      const erasure = this.#outside.get(sequence as number)
      const root = this.#chain.agreed.get(size as number)
      if (erasure === undefined || root === undefined || !isHash(erasure.hash)) continue
      const place = { index: (sequence as number) - 1, size: size as number }
      if (!isIncluded({ leaf: erasure.hash, proof, ...place }, root)) continue
      proven.add(sequence)
      this.proving = Math.max(this.proving, place.size)
    }
    return proven
  }
}
