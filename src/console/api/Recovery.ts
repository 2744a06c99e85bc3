/**
 * Asks again what is shown as failed because the service was away, once it answers again. Knows
 * failures and how to ask again, not what was asked.
 */
import { signal } from "@preact/signals"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import type { ApiFailure } from "./Client.ts"
import { isPresent } from "./Presence.ts"

/** Milliseconds between two looks whether the service answers: a restart takes some seconds. */
const LOOK_EVERY_MS = 2_000

/** What a service that starts or stops answers, and a proxy without one behind it. */
const AWAY: ReadonlyArray<number> = [502, 503, 504]

const isAway = ({ code, status }: ApiFailure): boolean =>
  code === "unreachable" || AWAY.includes(status)

interface Shown {
  readonly message: string
  readonly again: () => void
  isAskedAgain: boolean
}

/** The failures on the page, in the order in which they appeared. */
const shown = signal<ReadonlyArray<Shown>>([])
let timer: ReturnType<typeof setTimeout> | undefined

const waiting = (): ReadonlyArray<Shown> => shown.peek().filter((one) => !one.isAskedAgain)

const answers = (): Promise<boolean> =>
  fetch("/healthz", { cache: "no-store" }).then(
    ({ ok }) => ok,
    () => false
  )

const look = async (): Promise<void> => {
  const isBack = isPresent() && (await answers())
  timer = undefined
  if (isBack) {
    for (const one of waiting()) {
      one.isAskedAgain = true
      one.again()
    }
  }
  lookLater()
}

const lookLater = (): void => {
  if (timer === undefined && waiting().length > 0) timer = setTimeout(look, LOOK_EVERY_MS)
}

/**
 * Asks again by itself if the service was away. False where a failure that appeared before says the
 * same already.
 */
export const useRecovery = (
  failure: ApiFailure | undefined,
  again: (() => void) | undefined
): boolean => {
  const latest = useRef(again)
  latest.current = again
  const [own, setOwn] = useState<Shown>()
  const isRecovered = failure !== undefined && again !== undefined && isAway(failure)
  useLayoutEffect(() => {
    if (!isRecovered) return undefined
    const one: Shown = {
      message: failure.message,
      again: () => latest.current?.(),
      isAskedAgain: false
    }
    shown.value = [...shown.peek(), one]
    setOwn(one)
    lookLater()
    return () => {
      shown.value = shown.peek().filter((other) => other !== one)
    }
  }, [failure, isRecovered])
  const first = shown.value.find(({ message }) => message === failure?.message)
  return !isRecovered || own === undefined || first === undefined || first === own
}
