/** A stored event as filters look at it: what several of them ask is made once. */
import type { AuditEvent } from "./AuditEvent.ts"
import { type Elements, elementsOf, valueFinder } from "./MetadataPath.ts"
import { searchText } from "./SearchText.ts"

/** A path of metadata, as a filter asks for it. */
export interface AskedPath {
  readonly path: string
  readonly find: ReturnType<typeof valueFinder>
}

export const askedPath = (path: string): AskedPath => ({ path, find: valueFinder(path) })

export class FilteredEvent {
  readonly event: AuditEvent
  readonly #elements = new Map<string, Elements | undefined>()
  #searched: string | undefined

  constructor(event: AuditEvent) {
    this.event = event
  }

  /** What a search looks in. */
  get searched(): string {
    return (this.#searched ??= searchText(this.event))
  }

  /** What a path of metadata means; undefined if there is nothing. */
  elementsAt({ find, path }: AskedPath): Elements | undefined {
    if (this.event.metadata === undefined) return undefined
    if (this.#elements.has(path)) return this.#elements.get(path)
    const value = find(this.event.metadata)
    const elements = value === undefined ? undefined : elementsOf(value)
    this.#elements.set(path, elements)
    return elements
  }
}

/** Whether an event is one that is meant. */
export type Predicate = (of: FilteredEvent) => boolean

export const allOf =
  (conditions: ReadonlyArray<Predicate>): Predicate =>
  (of) =>
    conditions.every((holds) => holds(of))
