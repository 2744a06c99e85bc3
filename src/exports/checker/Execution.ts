/** What the facts of one execution of a pack add up to. */
import { sha256 } from "#sha256"
import { defined } from "../../domain/Defined.ts"
import { isObject } from "../../domain/json/Json.ts"
import { type SaidFact, saidOf } from "../../domain/traces/ShownSpans.ts"
import type { TraceFact } from "../../domain/traces/TraceFact.ts"
import type { Execution as ShownExecution } from "../../domain/traces/TraceResources.ts"
import { TraceView } from "../../domain/traces/TraceView.ts"
import { type Fault, fault } from "./Findings.ts"
import { canonical, hasStrings, isSequence } from "./Lines.ts"

/** The members of a shown span that come out of details, which may be long. */
const LONG_MEMBERS = ["agent_name", "error", "metadata", "name", "trigger"]

/** The members of a shown span that may be long, or the others. */
export const membersOf = (span: object, areLong: boolean): object =>
  Object.fromEntries(
    Object.entries(span).filter(([name]) => LONG_MEMBERS.includes(name) === areLong)
  )

/** Facts of an execution that only holds values of an event: it is in no list. */
const HOLDING_FACTS: ReadonlyArray<string> = ["span.payload", "execution.erased"]

/** A piece of a value that has no room in its span. */
interface Piece {
  readonly sha256: string
  readonly text: string
  readonly chunk: number
  readonly chunks: number
}

const isPiece = (value: unknown): value is Piece =>
  isObject(value)
  && hasStrings(value, "sha256", "text")
  && isSequence(value["chunk"])
  && isSequence(value["chunks"])

type OfType<Type extends TraceFact["type"]> = Extract<TraceFact, { readonly type: Type }>

/** A fact of a span as far as it is short. */
const shortOf = (fact: OfType<"span.started" | "span.ended" | "span.amended">): SaidFact => {
  const { created_at, details, ...rest } = fact
  const said = saidOf(rest)
  return details?.repairs === undefined ? said : { ...said, details: { repairs: details.repairs } }
}

/**
 * Long texts of spans that have ended are kept as their hashes only, so memory grows with the number
 * of spans and not with what they say.
 */
export class Execution {
  readonly #view = new TraceView()
  /** What each span says that may be long, or its SHA-256 once it has ended. */
  readonly #long = new Map<string, { readonly name: string; readonly metadata: object } | string>()
  /** The pieces so far of a value that is not whole yet. */
  #value: { readonly next: number; readonly text: string; readonly hash: string } | undefined
  /** Its facts so far. */
  facts = 0
  /** Sequence of the first fact without details, by time of erasure. */
  readonly undetailed = new Map<string, number>()
  /** References to the values that are whole. */
  readonly values: Array<string> = []
  onlyHolds = true

  take(fact: TraceFact): void {
    this.onlyHolds &&= HOLDING_FACTS.includes(fact.type)
    switch (fact.type) {
      case "span.started":
        this.#long.set(fact.span_id, {
          name: fact.details?.name ?? "",
          metadata: fact.details?.metadata ?? {}
        })
        this.#view.take(shortOf(fact))
        return
      case "span.amended":
        this.#view.take(shortOf(fact))
        return
      case "span.ended":
        this.#endSpan(fact)
        return
      case "span.event":
      case "span.payload":
        return
      default:
        this.#view.take(fact)
    }
  }

  /** The first end counts, until the span starts again. */
  #endSpan(fact: OfType<"span.ended">): void {
    const long = this.#long.get(fact.span_id)
    if (long === undefined || typeof long === "string") return
    const { error, metadata } = fact.details ?? {}
    const whole = defined({ ...long, metadata: { ...long.metadata, ...metadata }, error })
    this.#long.set(fact.span_id, sha256(canonical(whole)))
    this.#view.take(shortOf(fact))
  }

  /** Pieces of a value come one after the other, and add up to what has its hash. */
  pieceFault({ details, type }: TraceFact): Fault | undefined {
    if (type !== "span.payload" || details === undefined) return undefined
    const piece = isPiece(details.payload) ? details.payload : undefined
    const begun = piece?.chunk === 1 ? { next: 1, text: "", hash: piece.sha256 } : this.#value
    this.#value = undefined
    if (piece === undefined || piece.chunk !== begun?.next || piece.sha256 !== begun.hash) {
      return fault("content_mismatch", "the next piece of a value", "another")
    }
    const whole = begun.text + piece.text
    if (piece.chunk < piece.chunks) {
      this.#value = { next: piece.chunk + 1, text: whole, hash: piece.sha256 }
      return undefined
    }
    const own = sha256(whole)
    if (own !== piece.sha256) {
      return fault("content_mismatch", `a value of SHA-256 ${piece.sha256}`, own)
    }
    this.values.push(`sha256:${own}`)
    return undefined
  }

  /** What executions.ndjson has to say; undefined if no fact started it. */
  shown(): ShownExecution | undefined {
    return this.#view.execution
  }

  /** What spans.ndjson has to say of a span: its short members, and a SHA-256 of the long ones. */
  shownSpan(id: string): { readonly short: object; readonly digest: string } | undefined {
    const span = this.#view.span(id)
    if (span === undefined) return undefined
    const long = this.#long.get(id) ?? membersOf(span, true)
    const digest = typeof long === "string" ? long : sha256(canonical(long))
    return { short: membersOf(span, false), digest }
  }

  spanCount(): number {
    const root = this.#view.syntheticRoot
    return this.#long.size + (root === undefined || this.#long.has(root.id) ? 0 : 1)
  }
}
