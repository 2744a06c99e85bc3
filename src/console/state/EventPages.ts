/**
 * A list of events of any length, page by page as rows come into view. Its newest event is fixed by the
 * first page, so that events that arrive meanwhile shift nothing.
 */
import { signal } from "@preact/signals"
import type { AuditEvent, EventListResponse } from "../../client/gen/Api.d.ts"
import { failureOf } from "../api/Answer.ts"
import { type ApiFailure, call } from "../api/Client.ts"
import { pathWith } from "./EventsView.ts"

const PAGE_SIZE = 100
/** Pages that are kept; those that were out of view longest go. */
const KEPT_MAX = 50
/** Rows that pass by faster than this are not asked for. */
const SETTLE_MS = 60

export class EventPages {
  readonly #filter: string
  readonly #pages = new Map<number, ReadonlyArray<AuditEvent>>()
  readonly #asked = new Map<number, AbortController>()
  #newest: number | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  /** Events that match; undefined until the first page is there. */
  readonly total = signal<number | undefined>(undefined)
  readonly failure = signal<ApiFailure | undefined>(undefined)
  /** Milliseconds that the first page took. */
  readonly tookMs = signal<number | undefined>(undefined)
  /** Grows whenever rows arrive. */
  readonly version = signal(0)

  /** The filter as parameters of the API. */
  constructor(filter: string) {
    this.#filter = filter
    this.#ask(0)
  }

  /** Sequence number of the newest event of the list; 0 of an empty one. */
  get newest(): number {
    return this.#newest ?? 0
  }

  /** The row at a place, from 0; undefined until it is there. */
  at(index: number): AuditEvent | undefined {
    return this.#pages.get(Math.floor(index / PAGE_SIZE))?.[index % PAGE_SIZE]
  }

  /** The place of an event among the rows that are there. */
  indexOf(sequence: number): number | undefined {
    for (const [page, events] of this.#pages) {
      const index = events.findIndex(({ sequence_number }) => sequence_number === sequence)
      if (index !== -1) return page * PAGE_SIZE + index
    }
    return undefined
  }

  /** These rows are in view: asks for the pages that lack, once scrolling has settled. */
  want(first: number, last: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#fill(first, last), SETTLE_MS)
  }

  /** Asks again for what failed. */
  retry(): void {
    this.failure.value = undefined
    if (this.total.value === undefined) this.#ask(0)
    this.version.value += 1
  }

  end(): void {
    clearTimeout(this.#timer)
    for (const controller of this.#asked.values()) controller.abort()
  }

  #fill(first: number, last: number): void {
    if (this.total.value === undefined || this.failure.value !== undefined) return
    const [from, to] = [first, last].map((row) => Math.floor(row / PAGE_SIZE)) as [number, number]
    for (const [page, controller] of this.#asked) {
      if (page < from || page > to) {
        controller.abort()
        this.#asked.delete(page)
      }
    }
    for (let page = from; page <= to; page++) {
      const there = this.#pages.get(page)
      if (there === undefined) this.#ask(page)
      else {
        this.#pages.delete(page)
        this.#pages.set(page, there)
      }
    }
  }

  async #ask(page: number): Promise<void> {
    if (this.#asked.has(page)) return
    const controller = new AbortController()
    this.#asked.set(page, controller)
    const until = this.#newest === undefined ? "" : `&to_sequence=${this.#newest}`
    const path = pathWith(
      "/v1/events",
      this.#filter,
      `page=${page + 1}&page_size=${PAGE_SIZE}${until}`
    )
    const asked = performance.now()
    try {
      const answer = await call<EventListResponse>(path, { signal: controller.signal })
      this.#take(page, answer, performance.now() - asked)
    } catch (error) {
      if (!controller.signal.aborted) this.failure.value = failureOf(error)
    } finally {
      if (this.#asked.get(page) === controller) this.#asked.delete(page)
    }
  }

  #take(page: number, { events, total }: EventListResponse, milliseconds: number): void {
    this.#newest ??= events[0]?.sequence_number
    this.#pages.set(page, events)
    const oldest = this.#pages.keys().next().value
    if (this.#pages.size > KEPT_MAX && oldest !== undefined) this.#pages.delete(oldest)
    this.tookMs.value ??= milliseconds
    // Events whose details are erased meanwhile may leave the list; it never grows.
    this.total.value = total
    this.version.value += 1
  }
}
