/** One check of one pack, from its files to the verdict. */

import { utf8 } from "../../domain/Bytes.ts"
import { NotCanonicalizable } from "../../domain/json/CanonicalJson.ts"
import { isObject } from "../../domain/json/Json.ts"
import { HISTORY_TO } from "../../domain/Timestamp.ts"
import { EventCheck } from "./EventCheck.ts"
import { FactCheck } from "./FactCheck.ts"
import { counted } from "./Findings.ts"
import type { GivenKey } from "./Keys.ts"
import { jsonOf } from "./Lines.ts"
import { type Manifest, manifestOf, type Scope, scopeOf } from "./Manifest.ts"
import { checkpointOf, type Host, noteTextOf } from "./Notes.ts"
import { OpenPack, type Progress } from "./OpenPack.ts"
import { PackChain } from "./PackChain.ts"
import {
  EVENT_CHAIN,
  FILE,
  type PackSource,
  REQUIRED,
  TRACE_CHAIN,
  Unreadable
} from "./PackFiles.ts"
import type { PackProblem, PackReport, UnreadablePack } from "./Report.ts"
import { checkReport } from "./ReportCheck.ts"
import { isReplaced, Signers, shortName } from "./Signers.ts"

/** A checkpoint that the reader kept, and what it is called. */
export interface KeptCheckpoint {
  readonly label: string
  readonly text: string
}

/** What the reader has from elsewhere. */
export interface CheckOptions {
  readonly keys?: ReadonlyArray<GivenKey>
  readonly checkpoints?: ReadonlyArray<KeptCheckpoint>
  readonly progress?: Progress
}

/** A pack whose manifest can be read. */
class PackCheck {
  readonly #pack: OpenPack
  readonly #manifest: Manifest
  readonly #scope: Scope
  readonly #signers: Signers
  readonly #log: PackChain
  readonly #traces: PackChain
  readonly #events: EventCheck
  readonly #facts: FactCheck
  #notices: ReadonlyArray<string> = []

  constructor(pack: OpenPack, manifest: Manifest, signers: Signers) {
    this.#pack = pack
    this.#manifest = manifest
    this.#scope = scopeOf(manifest)
    this.#signers = signers
    const { service, tenant_id: tenant } = manifest
    const origin = `${service}/${tenant}`
    const { first_sequence_number: first, first_trace_sequence_number: firstFact } = manifest
    const of = { pack, signers, tenant }
    this.#log = new PackChain({ ...of, files: EVENT_CHAIN, origin, first })
    const traces = `${origin}/traces`
    this.#traces = new PackChain({ ...of, files: TRACE_CHAIN, origin: traces, first: firstFact })
    this.#events = new EventCheck(pack, manifest, this.#log)
    this.#facts = new FactCheck(pack, manifest, this.#traces)
  }

  /** The sequences that the bounds of the manifest name, of both chains. */
  #readClaims(): void {
    const [log, traces] = [this.#log, this.#traces]
    const { isFiltered, isWhole } = this.#scope
    const { bounds, to_trace_sequence: lastFact, trace_head: traceHead } = this.#manifest
    const { from_sequence: first, to, to_sequence: last } = bounds
    log.least = Math.max(1, first ?? 0)
    log.most = last ?? log.most
    if (isWhole) log.begins = log.least
    if (to === HISTORY_TO) log.ends = log.most
    // A pack of a selection of events may leave the facts out.
    const isPart = isFiltered || (first ?? last ?? null) !== null
    if (isWhole && ((traceHead ?? null) !== null || !isPart)) {
      traces.begins = 1
      traces.ends = lastFact ?? traces.most
      traces.most = traces.ends
    }
  }

  /** `manifestText`: what the manifest was read from. */
  async run(manifestText: string, kept: ReadonlyArray<KeptCheckpoint>): Promise<void> {
    const [pack, log, traces] = [this.#pack, this.#log, this.#traces]
    this.#readClaims()
    await this.#signers.read(this.#manifest)
    const { length } = utf8.encode(manifestText)
    await this.#signers.checkManifest(this.#manifest, log.origin, length)
    await log.readTree()
    await log.readNotes()
    await traces.readTree()
    await traces.readNotes()
    const said = jsonOf((await pack.text(FILE.verification)) ?? "")
    if (isObject(said)) await log.readRemoved(said["pruned"])
    for (const one of kept) await this.#keep(one)
    await this.#signers.readOrigin()
    log.judgeNotes()
    traces.judgeNotes()
    await this.#events.readErasures()
    await this.#events.join()
    log.checkSpan()
    this.#notices = checkReport(pack, this.#manifest, said, this.#events, log)
    log.checkNotes()
    await this.#events.checkOutside()
    await this.#facts.join()
    traces.checkSpan()
    await this.#facts.checkExecutions()
    await this.#facts.checkSpans()
    this.#facts.checkCounts()
    traces.checkNotes()
  }

  /** Adds a checkpoint that was given to the chain that it is of. */
  async #keep({ label, text }: KeptCheckpoint): Promise<void> {
    const note = checkpointOf(noteTextOf(text))
    if (note === undefined) throw new Unreadable(`${label} is no signed checkpoint`)
    const chain = [this.#log, this.#traces].find(({ origin }) => origin === note.origin)
    if (chain === undefined) {
      const own = this.#log.origin
      throw new Unreadable(`${label} is a checkpoint of ${note.origin}, the pack is of ${own}`)
    }
    const state = await this.#signers.stateOf(note)
    if (state.state === "bad_signature") {
      throw new Unreadable(`${label} has a signature that does not verify`)
    }
    // The pack's own key has signed what came from elsewhere: it is the service's key.
    this.#signers.keep(state.signers)
    chain.add({ ...note, ...state, file: label, isHandOver: false, isKept: true })
  }

  /** What these files can't show, whatever they hold, and what the service says of them. */
  addLimits(keptCount: number): void {
    const { found, strangers } = this.#pack
    const { isComplete, isFiltered, isWhole } = this.#scope
    const [{ events }, { facts }] = [this.#events, this.#facts]
    const [log, traces] = [this.#log, this.#traces]
    this.#addLimitsOfOrigin()
    found.open.push(...this.#notices)
    if (keptCount === 0) {
      found.open.push(
        "That nothing was rewritten and signed again by a holder of the signing key. A "
          + "checkpoint that you kept earlier shows it."
      )
    }
    if (log.removed > 0) {
      found.open.push(
        `That the events up to sequence ${log.removed} were removed by retention, as `
          + `${FILE.verification} says: the pack holds nothing of them.`
      )
    }
    if (!isComplete && (events < log.links || !isWhole)) {
      found.open.push(
        `That ${FILE.events} leaves no event of the bounds out: it holds ${events} of `
          + `${log.links} linked events`
          + `${isFiltered ? ", those that the filter in the manifest selected" : ""}; the `
          + "manifest's signature is the service's word for it."
      )
    }
    if (!isWhole || facts < traces.links) {
      found.open.push(
        `That ${FILE.facts} leaves no execution of the period out: it holds ${facts} of `
          + `${traces.links} linked facts; the manifest's signature is the service's word for it.`
      )
    }
    const { references } = this.#events
    for (const value of this.#facts.values()) references.delete(value)
    if (references.size > 0) {
      found.open.push(
        `What ${counted(references.size, "reference")} in metadata of events stand for: `
          + "the pack does not hold these values."
      )
    }
    if (this.#pack.has(FILE.pdf)) {
      found.open.push("The words of evidence.pdf: only that it is the file that was signed.")
    }
    found.open.push("The times: created_at is the service's own clock.")
    if (strangers.length > 0) {
      found.open.push(`Files in this folder that are not of the pack: ${strangers.join(", ")}.`)
    }
  }

  /** What the signature of the manifest leaves open. */
  #addLimitsOfOrigin(): void {
    const { found } = this.#pack
    const { arePinned, origin, ownKeys } = this.#signers
    if (origin === undefined) {
      const ids = ownKeys.map(({ vkey }) => shortName(vkey)).join(", ")
      found.open.push(
        "Who made the pack: the signatures were checked with the key inside the pack "
          + `(${ids || "none"}), which its maker chose. Get the service's public key by another `
          + "way than the pack: from its operator in person or, if you trust that address, from the "
          + "service (/.well-known/alk-keys.json); or take a checkpoint that you kept. Give it."
      )
    } else if (isReplaced(origin)) {
      const since =
        `its manifest is signed by ${shortName(origin.vkey)}, which was replaced at `
        + `${origin.retiredAt}; a holder of the replaced key can have signed it since.`
      found.open.push(
        this.#isRecomputed()
          ? "When and by whom the pack was put together, and that the log went no further then than "
              + `event ${this.#log.end} and fact ${this.#traces.end}: ${since} Its events and facts `
              + "are those that the service signed."
          : `Who made the pack, and that it leaves nothing of its bounds out: ${since} Only a pack of `
              + "no period, with every event and fact from its first sequence on and without "
              + `${FILE.pdf}, can be shown by the trees alone, with a checkpoint that you kept or one of `
              + "the next key."
      )
    }
    if (arePinned) return
    for (const { vkey } of ownKeys.slice(1).filter(({ root }) => root)) {
      found.open.push(`The key ${shortName(vkey)}: no key of the pack has endorsed it.`)
    }
  }

  /**
   * True if the trees alone show all that the pack holds, and that it leaves nothing of its bounds
   * out, without the word of its manifest.
   */
  #isRecomputed(): boolean {
    const [log, traces] = [this.#log, this.#traces]
    const isShown = ({ end, shown }: PackChain) => shown >= end
    return (
      log.links + traces.links > 0
      && this.#scope.isWhole
      && log.removed === 0
      && isShown(log)
      && isShown(traces)
      && log.shown >= this.#events.proving
      && this.#events.events === log.links
      && this.#facts.facts === traces.links
      && !this.#pack.has(FILE.pdf)
    )
  }

  /** True if a key known from elsewhere signed this, and is not replaced or all of it is shown. */
  get isOriginChecked(): boolean {
    const { origin } = this.#signers
    return origin !== undefined && (!isReplaced(origin) || this.#isRecomputed())
  }

  /** What a report says of the content. */
  content() {
    const [log, traces] = [this.#log, this.#traces]
    const { bounds, generated_at, tenant_id } = this.#manifest
    return {
      tenant_id,
      generated_at,
      bounds,
      events: this.#events.events,
      links: log.links,
      first_sequence_number: log.first?.sequence_number ?? null,
      last_sequence_number: log.last?.sequence_number ?? null,
      head_hash: log.last?.hash ?? null,
      facts: this.#facts.facts,
      trace_links: traces.links,
      keys: this.#signers.keysOfReport([log, traces])
    }
  }
}

/** The same of a pack whose manifest can't be read. */
const NO_CONTENT = {
  tenant_id: null,
  generated_at: null,
  bounds: null,
  events: 0,
  links: 0,
  first_sequence_number: null,
  last_sequence_number: null,
  head_hash: null,
  facts: 0,
  trace_links: 0,
  keys: []
}

const run = async (pack: OpenPack, host: Host, options: CheckOptions): Promise<PackReport> => {
  const { found } = pack
  const { checkpoints = [], keys = [] } = options
  const missing = REQUIRED.filter((name) => !pack.has(name))
  if (missing.length >= REQUIRED.length - 1) throw new Unreadable("this is no evidence pack")
  for (const name of missing) found.problem(name, null, "file_missing", `the file ${name}`, "none")
  const text = await pack.text(FILE.manifest)
  const manifest = pack.has(FILE.manifest) ? manifestOf(text, found) : undefined
  const check = manifest && new PackCheck(pack, manifest, new Signers(pack, host, keys))
  await check?.run(text ?? "", checkpoints)
  await pack.checkFiles(manifest)
  check?.addLimits(checkpoints.length)
  const good = check?.isOriginChecked === true ? "authentic" : "consistent"
  const order = ({ sequence_number: sequence }: PackProblem): number => sequence ?? 0
  return {
    verdict: found.total > 0 ? "tampered" : good,
    ...(check?.content() ?? NO_CONTENT),
    problems: found.problems.sort((left, right) => order(left) - order(right)),
    problems_total: found.total,
    checked: found.checked,
    not_established: found.open
  }
}

export const unreadable = (message: string): UnreadablePack => ({
  verdict: "unreadable",
  message,
  problems: [],
  problems_total: 0,
  checked: [],
  not_established: []
})

/** The check of a pack as a report; never throws for what a pack may hold. */
export const checkPack = async (
  makeSource: () => Promise<PackSource>,
  host: Host,
  options: CheckOptions = {}
): Promise<PackReport | UnreadablePack> => {
  let source: PackSource | undefined
  try {
    source = await makeSource()
    return await run(new OpenPack(source, options.progress), host, options)
  } catch (error) {
    if (error instanceof Unreadable) return unreadable(error.message)
    const isOdd = error instanceof RangeError || error instanceof NotCanonicalizable
    if (isOdd) return unreadable("it holds JSON that no writer of packs makes")
    throw error
  } finally {
    await source?.close?.()
  }
}
