/**
 * One execution with its spans and graph: asked for page by page, and asked for again while it runs,
 * whenever its stream tells of something new.
 */
import { signal } from "@preact/signals"
import type { Dag, Execution, Span, SpanList } from "../../client/gen/Api.d.ts"
import { failureOf } from "../api/Answer.ts"
import { type ApiFailure, call } from "../api/Client.ts"
import { LiveStream } from "../api/LiveStream.ts"

/** Spans that the page of an execution shows: as many as a graph has. */
export const SPANS_MAX = 10_000
const PAGE_SIZE = 1_000
/** Between two askings, however much happens. */
const PAUSE_MS = 1_000

export interface RunData {
  readonly execution: Execution
  readonly spans: ReadonlyArray<Span>
  /** There are more spans than the page shows. */
  readonly isCut: boolean
  /** Undefined where the graph is too large. */
  readonly dag: Dag | undefined
}

export class Run {
  readonly data = signal<RunData | undefined>(undefined)
  readonly failure = signal<ApiFailure | undefined>(undefined)
  /** Spans that have come of those that are being asked for. */
  readonly loaded = signal(0)
  /** Tells how the stream of a running execution stands. */
  readonly stream = signal<LiveStream | undefined>(undefined)
  /** When `data` came, milliseconds since 1970. */
  readonly at = signal<number | undefined>(undefined)

  readonly #path: string
  #controller: AbortController | undefined
  #pause: ReturnType<typeof setTimeout> | undefined
  #isStale = false

  constructor(id: string) {
    this.#path = `/api/v1/executions/${encodeURIComponent(id)}`
    this.load()
  }

  /** Asks for everything anew; what is shown stays until it is there. */
  load(): void {
    this.#controller?.abort()
    const controller = new AbortController()
    this.#controller = controller
    this.#isStale = false
    this.#ask(controller.signal).then(
      (data) => {
        if (controller.signal.aborted) return
        this.#controller = undefined
        this.data.value = data
        this.failure.value = undefined
        this.at.value = Date.now()
        this.#follow(data.execution)
        if (this.#isStale) this.#soon()
      },
      (error) => {
        if (controller.signal.aborted) return
        this.#controller = undefined
        this.failure.value = failureOf(error)
      }
    )
  }

  end(): void {
    clearTimeout(this.#pause)
    this.#controller?.abort()
    this.stream.peek()?.end()
  }

  async #ask(abort: AbortSignal): Promise<RunData> {
    const asked = { signal: abort }
    const execution = await call<Execution>(this.#path, asked)
    const spans: Array<Span> = []
    let cursor = ""
    this.loaded.value = 0
    do {
      const page = await call<SpanList>(
        `${this.#path}/spans?page_size=${PAGE_SIZE}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`,
        asked
      )
      for (const span of page.spans) spans.push(span)
      this.loaded.value = spans.length
      cursor = page.next_cursor ?? ""
    } while (cursor !== "" && spans.length < SPANS_MAX)
    const dag =
      spans.length > SPANS_MAX
        ? undefined
        : await call<Dag>(`${this.#path}/dag`, asked).catch(tooLarge)
    return { execution, spans: spans.slice(0, SPANS_MAX), isCut: cursor !== "", dag }
  }

  /** While it runs its stream says when to ask again; what it said before was asked for. */
  #follow({ status }: Execution): void {
    const open = this.stream.peek()
    if (status !== "RUNNING") {
      open?.end()
      this.stream.value = undefined
    } else if (open === undefined) {
      const stream = new LiveStream(`${this.#path}/stream`, "", () => this.#soon())
      this.stream.value = stream
      stream.start()
    }
  }

  #soon(): void {
    if (this.#controller !== undefined) {
      this.#isStale = true
      return
    }
    this.#pause ??= setTimeout(() => {
      this.#pause = undefined
      this.load()
    }, PAUSE_MS)
  }
}

/** 413: the graph has a limit. */
const tooLarge = (error: unknown): undefined => {
  if (failureOf(error).status !== 413) throw error
  return undefined
}
