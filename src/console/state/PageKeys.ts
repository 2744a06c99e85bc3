/** Keys of the page that is open, for the shell that listens and for its help. */
import { signal } from "@preact/signals"
import { useEffect } from "preact/hooks"

export interface PageKey {
  /** As `KeyboardEvent.key` names it. */
  readonly key: string
  readonly what: string
  readonly run: () => void
}

export const pageKeys = signal<ReadonlyArray<PageKey>>([])

/** Keys that hold while the component is shown; give the same array while they are the same. */
export const usePageKeys = (keys: ReadonlyArray<PageKey>): void => {
  useEffect(() => {
    pageKeys.value = [...pageKeys.peek(), ...keys]
    return () => {
      pageKeys.value = pageKeys.peek().filter((key) => !keys.includes(key))
    }
  }, [keys])
}
