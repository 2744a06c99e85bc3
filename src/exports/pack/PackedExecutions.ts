/**
 * The executions that the facts of a pack are about, held against the chain of facts: an execution
 * of the period that was left out would leave no trace in the pack but its links. Keeps a few words
 * of each execution.
 */
import { Effect, Stream } from "effect"
import { parseFact } from "../../domain/traces/FactText.ts"
import type { TraceFact } from "../../domain/traces/TraceFact.ts"
import { StoreUnavailable } from "../../ports/EventStore.ts"
import type { CheckedFacts } from "../../verify/CheckedFacts.ts"
import type { TraceScope } from "./TraceExport.ts"

/**
 * When an execution ran, by the facts that count; a number of 0: none was seen. One whose start was
 * removed with the beginning of the chain is no execution any more.
 */
interface Ran {
  startNumber: number
  started: string
  endNumber: number
  ended: string
}

const take = (ran: Ran, fact: TraceFact): void => {
  if (fact.type === "execution.started" && fact.fact_number > ran.startNumber) {
    Object.assign(ran, { startNumber: fact.fact_number, started: fact.started_at })
  } else if (fact.type === "execution.ended" && fact.fact_number > ran.endNumber) {
    Object.assign(ran, { endNumber: fact.fact_number, ended: fact.ended_at })
  } else if (fact.type === "execution.resumed") {
    ran.endNumber = 0
  }
}

const overlaps = (
  { endNumber, ended, started, startNumber }: Ran,
  { from, to }: TraceScope
): boolean => startNumber > 0 && started <= to && (endNumber === 0 || ended >= from)

const notWhole = (executionId: string) =>
  Effect.fail(
    new StoreUnavailable({
      operation: "hold executions against the chain",
      cause: new Error(`the store left facts of execution ${executionId} out`)
    })
  )

export class PackedExecutions {
  /** Facts in the pack by execution. */
  readonly #packed = new Map<string, number>()

  /** A fact on its way into the pack. */
  packed(body: string): void {
    const id = parseFact(body)?.execution_id
    if (id !== undefined) this.#packed.set(id, (this.#packed.get(id) ?? 0) + 1)
  }

  /** Fails unless the pack has all facts that belong into it. */
  hold(checked: CheckedFacts["Service"], scope: Required<TraceScope>) {
    const { last, tenantId } = scope
    const left = this.#packed
    const others = new Map<string, Ran>()
    const found = (fact: TraceFact): void => {
      const id = fact.execution_id
      const count = left.get(id)
      if (count !== undefined) left.set(id, count - 1)
      else {
        const ran = others.get(id) ?? { startNumber: 0, started: "", endNumber: 0, ended: "" }
        take(ran, fact)
        others.set(id, ran)
      }
    }
    return Effect.gen(function* () {
      yield* Stream.runForEach(checked.upTo(tenantId, last), (facts) =>
        Effect.sync(() => facts.forEach(found))
      )
      for (const [id, count] of left) if (count !== 0) return yield* notWhole(id)
      for (const [id, ran] of others) {
        if (overlaps(ran, scope)) return yield* notWhole(id)
      }
    })
  }
}
