/** The execution traces of a pack: facts against their chain, executions and spans against facts. */
import { sha256 } from "#sha256"
import { type Fields, isObject } from "../../domain/json/Json.ts"
import type { TraceFact } from "../../domain/traces/TraceFact.ts"
import { Execution, membersOf } from "./Execution.ts"
import { factFault, factOf } from "./Facts.ts"
import { counted, range, shown } from "./Findings.ts"
import { joinRecords } from "./Joined.ts"
import { canonical, isCanonical, isSequence, jsonOf } from "./Lines.ts"
import { type Manifest, scopeOf } from "./Manifest.ts"
import type { OpenPack } from "./OpenPack.ts"
import type { Link, PackChain } from "./PackChain.ts"
import { FILE } from "./PackFiles.ts"

export class FactCheck {
  readonly #pack: OpenPack
  readonly #manifest: Manifest
  readonly #isWhole: boolean
  readonly #chain: PackChain
  readonly #executions = new Map<string, Execution>()
  /** Lines of the files. */
  facts = 0
  #executionLines = 0
  #spanLines = 0

  constructor(pack: OpenPack, manifest: Manifest, chain: PackChain) {
    this.#pack = pack
    this.#manifest = manifest
    this.#isWhole = scopeOf(manifest).isWhole
    this.#chain = chain
  }

  /** References to the values that the facts hold. */
  *values(): Iterable<string> {
    for (const { values } of this.#executions.values()) yield* values
  }

  async join(): Promise<void> {
    this.facts = await joinRecords({
      found: this.#pack.found,
      file: FILE.facts,
      lines: this.#pack.lines(FILE.facts),
      chain: this.#chain,
      isComplete: this.#isWhole,
      read: factOf,
      sequenceOf: (fact) => fact.chain_sequence,
      saidIn: () => 0,
      renumbered: () => undefined,
      take: (line, fact, link) => this.#take(line, fact, link)
    })
    this.#checkErasures()
  }

  #take(line: string, fact: TraceFact, link: Link | undefined): void {
    const { found } = this.#pack
    const sequence = fact.chain_sequence
    const wrongness = factFault(line, fact, this.#manifest.tenant_id)
    if (link === undefined) {
      found.problem(FILE.facts, sequence, "hash_mismatch", `a link in ${FILE.traceLinks}`, "none")
    } else if (fact.prev_hash !== link.prev_hash) {
      found.problem(FILE.facts, sequence, "prev_hash_mismatch", link.prev_hash, fact.prev_hash)
    } else if (wrongness !== undefined) found.fault(FILE.facts, sequence, wrongness)
    else if (fact.hash !== link.hash) {
      const expected = `${link.hash}, as ${FILE.traceLinks} says`
      found.problem(FILE.facts, sequence, "hash_mismatch", expected, fact.hash)
    }
    const execution = this.#executions.get(fact.execution_id) ?? new Execution()
    this.#executions.set(fact.execution_id, execution)
    this.#number(execution, fact)
    execution.take(fact)
    const broken = execution.pieceFault(fact)
    if (broken !== undefined) found.fault(FILE.facts, sequence, broken)
  }

  /** Numbers without gaps, and details that are gone only where a later fact says so. */
  #number(execution: Execution, fact: TraceFact): void {
    const { chain_sequence: sequence, created_at, erased_at: time, fact_number: number } = fact
    const expected = execution.facts + 1
    if (number !== expected) {
      const reason = number > expected ? "sequence_gap" : "duplicate_sequence"
      const wanted = `fact_number ${expected}`
      this.#pack.found.problem(FILE.facts, sequence, reason, wanted, `fact_number ${number}`)
    }
    execution.facts = Math.max(execution.facts, number)
    if (fact.type === "execution.erased") execution.undetailed.delete(created_at)
    if (time !== undefined && !execution.undetailed.has(time)) {
      execution.undetailed.set(time, sequence)
    }
  }

  #checkErasures(): void {
    for (const { undetailed } of this.#executions.values()) {
      for (const [time, sequence] of undetailed) {
        const expected = `a later fact execution.erased of ${time}`
        this.#pack.found.mismatch(FILE.facts, sequence, expected, "none")
      }
    }
  }

  /** Each execution of the file against its facts. */
  async checkExecutions(): Promise<void> {
    const { found } = this.#pack
    const listed = [...this.#executions].filter(([, { onlyHolds }]) => !onlyHolds)
    const left = new Set<unknown>(listed.map(([id]) => id))
    for await (const line of this.#pack.lines(FILE.executions)) {
      this.#executionLines += 1
      const said = this.#objectOf(FILE.executions, line)
      if (said === undefined) continue
      const isOpen = left.delete(said["id"])
      const wanted = isOpen ? this.#executions.get(said["id"] as string)?.shown() : undefined
      const expected = wanted && canonical(wanted)
      if (expected !== canonical(said)) {
        const what = expected ?? "an execution that its facts start, once"
        found.mismatch(FILE.executions, null, what, canonical(said))
      }
    }
    this.#more(FILE.executions, left.size, "execution")
  }

  /** Each span of the file against the facts of its execution. */
  async checkSpans(): Promise<void> {
    const { found } = this.#pack
    const seen = new Map<unknown, Set<unknown>>()
    let known = 0
    for await (const line of this.#pack.lines(FILE.spans)) {
      this.#spanLines += 1
      const said = this.#objectOf(FILE.spans, line)
      if (said === undefined) continue
      const { execution_id: executionId, id } = said
      const ids = seen.get(executionId) ?? new Set()
      seen.set(executionId, ids)
      const execution = ids.has(id) ? undefined : this.#executions.get(executionId as string)
      ids.add(id)
      const wanted = execution?.shownSpan(id as string)
      if (wanted === undefined) {
        found.mismatch(FILE.spans, null, "a span that its facts start, once", canonical(said))
        continue
      }
      known += 1
      const [expected, short] = [canonical(wanted.short), canonical(membersOf(said, false))]
      const long = canonical(membersOf(said, true))
      if (expected !== short) found.mismatch(FILE.spans, null, expected, short)
      else if (sha256(long) !== wanted.digest) {
        found.mismatch(FILE.spans, null, "the name, metadata and error that its facts say", long)
      }
    }
    let all = 0
    for (const execution of this.#executions.values()) all += execution.spanCount()
    this.#more(FILE.spans, all - known, "span")
  }

  #more(file: string, count: number, noun: string): void {
    if (count <= 0) return
    this.#pack.found.mismatch(
      file,
      null,
      `${counted(count, noun)} more, as ${FILE.facts} says`,
      "none"
    )
  }

  /** A line of executions or spans; undefined, and a problem, if it is not one. */
  #objectOf(file: string, line: string | undefined): Fields | undefined {
    const value = line === undefined ? undefined : jsonOf(line)
    if (isObject(value) && isCanonical(value)) return value
    this.#pack.found.mismatch(file, null, "a JSON object", "bytes that are none")
    return undefined
  }

  /** What the manifest says of the traces against what was read. */
  checkCounts(): void {
    const { found } = this.#pack
    const [chain, manifest] = [this.#chain, this.#manifest]
    const { counts, trace_head: head } = manifest
    const differs = (what: string, read: unknown, told: unknown): void =>
      found.differs(FILE.manifest, what, read, told)
    const last = chain.last?.sequence_number ?? null
    const first = chain.first?.sequence_number
    differs("facts", this.facts, counts["facts"])
    differs("trace_links", chain.links, counts["trace_links"])
    differs("executions", this.#executionLines, counts["executions"])
    differs("spans", this.#spanLines, counts["spans"])
    differs("first_trace_sequence_number", first, manifest["first_trace_sequence_number"])
    differs("last_trace_sequence_number", last, manifest["last_trace_sequence_number"])
    const said = isObject(head) ? head["sequence_number"] : undefined
    if (this.#isWhole && (said ?? 0) !== chain.end) {
      if (isSequence(said) && said > chain.end) {
        const missing = range(chain.end + 1, said)
        found.problem(FILE.traceLinks, chain.end + 1, "tail_missing", missing, "none")
      } else differs("trace_head", last, said)
    } else if (said === last && chain.last !== undefined) {
      const [own, told] = [chain.last.hash, isObject(head) ? head["hash"] : undefined]
      if (told !== own) {
        found.problem(FILE.traceLinks, last, "hash_mismatch", `head ${shown(told)}`, own)
      }
    }
    if (chain.links > 0) {
      found.checked.push(
        `${counted(this.facts, "fact")} of ${counted(this.#executions.size, "execution")} and `
          + `${counted(chain.links, "link")} of their chain: each recomputed; executions and `
          + "spans are what the facts say."
      )
    }
  }
}
