/** The signed checkpoints of one chain, newest first: a page at a time, and the new ones in front. */
import { signal } from "@preact/signals"
import type { Checkpoint, CheckpointList } from "../../client/gen/Api.d.ts"
import { failureOf } from "../api/Answer.ts"
import { type ApiFailure, call } from "../api/Client.ts"
import type { ChainName } from "./VerificationRequest.ts"

/** What the service gives at once. */
const PAGE_SIZE = 50

export class CheckpointPages {
  readonly chain: ChainName
  /** Largest tree first, without gaps; undefined until the first page is there. */
  readonly list = signal<ReadonlyArray<Checkpoint> | undefined>(undefined)
  /** There are older ones. */
  readonly hasMore = signal(false)
  readonly isLoading = signal(false)
  readonly failure = signal<ApiFailure | undefined>(undefined)
  readonly #controller = new AbortController()
  /** Newer ones were signed while an answer was on its way. */
  #isOutdated = false

  constructor(chain: ChainName) {
    this.chain = chain
  }

  end(): void {
    this.#controller.abort()
  }

  /** Asks for the newest ones, again if that is asked for meanwhile. */
  async renew(): Promise<void> {
    this.#isOutdated = true
    while (this.#isOutdated && !this.isLoading.peek()) {
      this.#isOutdated = false
      await this.#newest()
    }
  }

  #newest(): Promise<void> {
    return this.#ask("", (page) => {
      const before = this.list.peek() ?? []
      const oldest = page.at(-1)?.tree_size ?? 0
      const older = before.filter(({ tree_size }) => tree_size < oldest)
      // What is not next to what was there would leave a gap.
      const isNext = page.length < PAGE_SIZE || before.some(({ tree_size }) => tree_size === oldest)
      if (!isNext || before.length === 0) this.hasMore.value = page.length === PAGE_SIZE
      this.list.value = isNext ? [...page, ...older] : page
    })
  }

  /** Asks for the page after the oldest one. */
  async more(): Promise<void> {
    const before = this.list.peek() ?? []
    await this.#ask(`&before_size=${before.at(-1)?.tree_size ?? 1}`, (page) => {
      this.hasMore.value = page.length === PAGE_SIZE
      this.list.value = [...before, ...page]
    })
    if (this.#isOutdated) await this.renew()
  }

  async #ask(more: string, take: (page: ReadonlyArray<Checkpoint>) => void): Promise<void> {
    if (this.isLoading.peek()) return
    this.isLoading.value = true
    const path = `/v1/chain/checkpoints?chain=${this.chain}&limit=${PAGE_SIZE}${more}`
    try {
      const { signal: aborted } = this.#controller
      take((await call<CheckpointList>(path, { signal: aborted })).checkpoints)
      this.failure.value = undefined
    } catch (error) {
      if (!this.#controller.signal.aborted) this.failure.value = failureOf(error)
    } finally {
      this.isLoading.value = false
    }
  }
}
