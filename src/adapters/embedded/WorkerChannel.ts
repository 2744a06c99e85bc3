/** Questions and answers over the channel between the first process and a worker. */
import { Effect } from "effect"

type Message =
  | { readonly kind: "ready" }
  | { readonly kind: "question"; readonly id: number; readonly question: unknown }
  | { readonly kind: "answer"; readonly id: number; readonly answer: unknown }
  | { readonly kind: "failed"; readonly id: number; readonly message: string }

export interface WorkerChannelOptions {
  /** Sends to the other side; what can't be sent because it is gone is dropped. */
  readonly send: (message: Message) => void
  /** Answers a question of the other side. */
  readonly answer: (question: unknown) => Promise<unknown>
  readonly onReady?: () => void
}

/** One side of a channel. */
export class WorkerChannel {
  readonly #options: WorkerChannelOptions
  readonly #waiting = new Map<number, (answer: Effect.Effect<unknown>) => void>()
  #asked = 0

  constructor(options: WorkerChannelOptions) {
    this.#options = options
  }

  /** Says that this worker listens. */
  ready(): void {
    this.#options.send({ kind: "ready" })
  }

  /**
   * Dies if the other side failed to answer. Never ends if it is gone: the caller stops it, or ends
   * with the process.
   */
  ask(question: unknown): Effect.Effect<unknown> {
    return Effect.callback((resume) => {
      const id = this.#asked++
      this.#waiting.set(id, resume)
      this.#options.send({ kind: "question", id, question })
      return Effect.sync(() => void this.#waiting.delete(id))
    })
  }

  /** Takes what the other side has sent. */
  receive(message: unknown): void {
    const received = message as Message
    if (received.kind === "ready") return this.#options.onReady?.()
    const { id } = received
    if (received.kind === "question") return this.#answer(id, received.question)
    const resume = this.#waiting.get(id)
    this.#waiting.delete(id)
    resume?.(
      received.kind === "answer"
        ? Effect.succeed(received.answer)
        : Effect.die(new Error(`the other process failed to answer: ${received.message}`))
    )
  }

  #answer(id: number, question: unknown): void {
    const { answer, send } = this.#options
    void answer(question).then(
      (answered) => send({ kind: "answer", id, answer: answered }),
      (cause: unknown) => send({ kind: "failed", id, message: String(cause) })
    )
  }
}
