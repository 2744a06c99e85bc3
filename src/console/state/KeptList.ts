/** A list that this browser keeps for the console. */
import { type ReadonlySignal, signal } from "@preact/signals"
import { parseJson } from "../../domain/json/Json.ts"

export interface KeptList<A> {
  readonly items: ReadonlySignal<ReadonlyArray<A>>
  /** The oldest go where there would be too many. */
  keep(items: ReadonlyArray<A>): void
}

/** What is stored under a name, as far as it is what the console would have stored there. */
export const keptList = <A>(
  storedAs: string,
  isItem: (one: unknown) => one is A,
  max: number
): KeptList<A> => {
  const stored = (): ReadonlyArray<A> => {
    try {
      const found = parseJson(localStorage.getItem(storedAs) ?? "[]")
      return Array.isArray(found) ? found.filter(isItem) : []
    } catch {
      return []
    }
  }
  const items = signal(stored())
  return {
    items,
    keep: (all) => {
      items.value = all.slice(-max)
      try {
        localStorage.setItem(storedAs, JSON.stringify(items.peek()))
      } catch {
        // They hold for this page.
      }
    }
  }
}
