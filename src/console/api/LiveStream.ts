/**
 * A stream of Server-Sent Events with the browser's session, as the client follows it, and how it is
 * for those who show it.
 */
import { signal } from "@preact/signals"
import { type FollowParts, followStream } from "../../client/events/FollowStream.ts"
import { systemClock } from "../../client/Pause.ts"
import { failureOf } from "./Answer.ts"
import { type ApiFailure, ask } from "./Client.ts"

export type StreamState =
  | { readonly is: "connecting" }
  | { readonly is: "live" }
  /** It ended, or nothing came; the next attempt is under way or will be soon. */
  | { readonly is: "cut"; readonly since: number }
  /** The service does not give this stream; `start` tries again. */
  | { readonly is: "refused"; readonly failure: ApiFailure }

const parts: FollowParts = {
  clock: systemClock,
  transport: {
    open: ({ accept, headers, path, signal: given }) =>
      ask(path, { accept, headers, ...(given === undefined ? {} : { signal: given }) })
  }
}

export class LiveStream {
  readonly state = signal<StreamState>({ is: "connecting" })
  /** Told when it goes on after a cut, with the times of the cut. */
  onCut: (from: number, to: number) => void = () => {}
  readonly #path: string
  readonly #onData: (data: string) => void
  #lastId: string
  #controller: AbortController | undefined

  /** `firstId` is what it begins after, empty for what comes; `onData` gets the data of each message. */
  constructor(path: string, firstId: string, onData: (data: string) => void) {
    this.#path = path
    this.#lastId = firstId
    this.#onData = onData
  }

  start(): void {
    this.end()
    const controller = new AbortController()
    this.#controller = controller
    this.state.value = { is: "connecting" }
    this.#follow(controller.signal).catch((error) => {
      if (controller !== this.#controller) return
      this.state.value = { is: "refused", failure: failureOf(error) }
    })
  }

  end(): void {
    this.#controller?.abort()
    this.#controller = undefined
  }

  async #follow(ended: AbortSignal): Promise<void> {
    const messages = followStream(parts, this.#path, {
      firstId: async () => this.#lastId,
      signal: ended,
      onConnection: (state) => this.#show(state === "live")
    })
    for await (const { data, id } of messages) {
      this.#lastId = id
      // An id alone moves the place to resume from.
      if (data !== "") this.#onData(data)
    }
  }

  #show(isLive: boolean): void {
    const before = this.state.peek()
    if (!isLive) {
      if (before.is !== "cut") this.state.value = { is: "cut", since: Date.now() }
      return
    }
    if (before.is === "cut") this.onCut(before.since, Date.now())
    this.state.value = { is: "live" }
  }
}
