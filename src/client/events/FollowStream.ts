/**
 * Follows a stream of Server-Sent Events: opened again after its last id whenever it ends, so that
 * nothing is missed and nothing comes twice. A connection on which nothing moves counts as cut. Knows
 * nothing of what the messages say.
 */
import { ApiFailure } from "../ApiFailure.ts"
import type { Clock } from "../Pause.ts"
import { waitMs } from "../RetryAfter.ts"
import type { Transport } from "../Transport.ts"
import { type Message, MessageReader } from "./ServerSentEvents.ts"

/** Milliseconds of silence after which a connection is cut: the service says something every 15 s. */
const SILENCE_MS = 40_000

/** Called when the connection is there, and when it was lost. */
export type OnConnection = (state: "live" | ApiFailure) => void

export interface FollowParts {
  readonly transport: Pick<Transport, "open">
  readonly clock: Clock
}

export interface FollowOptions {
  /** The id to begin after; empty for what comes from now on. Asked again if it fails. */
  readonly firstId: (signal: AbortSignal) => Promise<string>
  /** Ends the sequence without an error. */
  readonly signal: AbortSignal
  readonly onConnection: OnConnection
}

const isFinal = ({ isTransient, status }: ApiFailure): boolean => !isTransient && status !== 0

const cutOff = (cause?: unknown): ApiFailure =>
  new ApiFailure(0, "cut_off", "the stream has ended; it is opened again", { cause })

/** One connection. */
interface Connection {
  readonly path: string
  readonly lastId: string
  readonly signal: AbortSignal
}

/** The messages of one connection, until it ends; always by a throw of ApiFailure, or the signal. */
async function* connected(
  { transport }: FollowParts,
  { lastId, path, signal }: Connection,
  opened: () => void
): AsyncGenerator<Message, void> {
  const controller = new AbortController()
  const giveUp = () => controller.abort()
  signal.addEventListener("abort", giveUp, { once: true })
  let silence: ReturnType<typeof setTimeout> | undefined
  const heard = () => {
    clearTimeout(silence)
    silence = setTimeout(giveUp, SILENCE_MS)
  }
  /** What was given up for its silence has no failure of its own. */
  const orCut = (error: unknown): never => {
    throw error instanceof ApiFailure ? error : cutOff(error)
  }
  heard()
  try {
    const response = await transport
      .open({
        method: "GET",
        path,
        accept: "text/event-stream",
        headers: lastId === "" ? {} : { "last-event-id": lastId },
        signal: controller.signal
      })
      .catch(orCut)
    opened()
    heard()
    const reader = new MessageReader(lastId)
    const decoder = new TextDecoder()
    const bytes = response.body!.getReader()
    for (;;) {
      const { done, value } = await bytes.read().catch(orCut)
      if (done) throw cutOff()
      heard()
      yield* reader.read(decoder.decode(value, { stream: true }))
    }
  } finally {
    clearTimeout(silence)
    signal.removeEventListener("abort", giveUp)
    controller.abort()
  }
}

/** The messages of a stream over as many connections as it takes. Throws ApiFailure of refusals. */
export async function* followStream(
  parts: FollowParts,
  path: string,
  { firstId, onConnection, signal }: FollowOptions
): AsyncGenerator<Message, void> {
  const { clock } = parts
  let lastId: string | undefined
  let failures = 0
  while (!signal.aborted) {
    try {
      const opened = () => {
        failures = 0
        onConnection("live")
      }
      lastId ??= await firstId(signal)
      for await (const message of connected(parts, { path, lastId, signal }, opened)) {
        if (signal.aborted) return
        lastId = message.id
        yield message
      }
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof ApiFailure) || isFinal(error)) throw error
      failures += 1
      onConnection(error)
      await clock.wait(waitMs(failures, clock.random, error.retryAfterMs), signal)
    }
  }
}
