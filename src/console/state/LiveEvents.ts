/**
 * Events as they come, the newest first: so many of them as a page shows. While it is paused they are
 * counted, kept as far as there is room, and shown when it goes on.
 */
import { signal } from "@preact/signals"
import type { AuditEvent } from "../../client/gen/Api.d.ts"
import { parseJson } from "../../domain/json/Json.ts"
import { LiveStream } from "../api/LiveStream.ts"
import { pathWith } from "./EventsView.ts"

/** Events that are kept. */
export const LIVE_MAX = 1_000
/** Cuts that are shown. */
const CUTS_MAX = 100
/** How often the page is drawn anew, however many events come. */
const DRAW_MS = 200
const RATE_SECONDS = 10

/** Where the stream was cut. */
export interface Cut {
  /** The newest event before it. */
  readonly after: number
  /** Milliseconds since 1970. */
  readonly from: number
  readonly to: number
}

/** A line of the page: an event, or where it was cut. */
export type LiveLine = AuditEvent | Cut

export const isCut = (line: LiveLine): line is Cut => "after" in line

export class LiveEvents {
  readonly stream: LiveStream
  /** The newest first. */
  readonly events = signal<ReadonlyArray<AuditEvent>>([])
  /** The newest first. */
  readonly cuts = signal<ReadonlyArray<Cut>>([])
  readonly isPaused = signal(false)
  /** Events that came during the pause. */
  readonly missed = signal(0)
  /** Events that came since the page was opened. */
  readonly count = signal(0)
  /** Events per second of the last 10 s. */
  readonly rate = signal(0)

  /** In the order in which they came. */
  #waiting: Array<AuditEvent> = []
  #count = 0
  #newest: number
  readonly #counts: Array<number> = []
  readonly #draws: ReturnType<typeof setInterval>
  readonly #rates: ReturnType<typeof setInterval>

  /** Events behind a sequence number that match a filter, given as parameters of the API. */
  constructor(filter: string, after: number) {
    this.stream = new LiveStream(pathWith("/v1/events/stream", filter, ""), String(after), (data) =>
      this.#take(parseJson(data) as AuditEvent)
    )
    this.#newest = after
    this.stream.onCut = (from, to) => {
      this.cuts.value = [{ after: this.#newest, from, to }, ...this.cuts.peek()].slice(0, CUTS_MAX)
    }
    this.stream.start()
    this.#draws = setInterval(() => this.#draw(), DRAW_MS)
    this.#rates = setInterval(() => this.#measure(), 1_000)
  }

  pause(isPaused: boolean): void {
    this.isPaused.value = isPaused
    this.#draw()
  }

  end(): void {
    clearInterval(this.#draws)
    clearInterval(this.#rates)
    this.stream.end()
  }

  /** The events with the cuts between them. */
  get lines(): ReadonlyArray<LiveLine> {
    const cuts = [...this.cuts.value]
    const lines: Array<LiveLine> = []
    for (const event of this.events.value) {
      while (cuts[0] !== undefined && cuts[0].after >= event.sequence_number) {
        lines.push(cuts.shift()!)
      }
      lines.push(event)
    }
    return lines
  }

  #take(event: AuditEvent): void {
    this.#count += 1
    this.#newest = event.sequence_number
    this.#waiting.push(event)
    if (this.#waiting.length > 2 * LIVE_MAX) this.#waiting = this.#waiting.slice(-LIVE_MAX)
    if (this.isPaused.peek()) this.missed.value += 1
  }

  #draw(): void {
    if (this.isPaused.value || this.#waiting.length === 0) return
    const arrived = this.#waiting.toReversed()
    this.#waiting = []
    this.missed.value = 0
    this.count.value = this.#count
    this.events.value = [...arrived, ...this.events.peek()].slice(0, LIVE_MAX)
  }

  #measure(): void {
    this.#counts.push(this.#count)
    if (this.#counts.length > RATE_SECONDS + 1) this.#counts.shift()
    const seconds = this.#counts.length - 1
    if (seconds > 0) this.rate.value = (this.#count - this.#counts[0]!) / seconds
  }
}
