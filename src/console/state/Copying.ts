/** Copies texts for keys and commands, which have no button of their own to say that it was done. */
import { signal } from "@preact/signals"
import { useMemo } from "preact/hooks"
import { usePageKeys } from "./PageKeys.ts"

/** What was said last, while it is to be seen. */
export const said = signal<string | undefined>(undefined)

const SAID_MS = 2_500
let timer: ReturnType<typeof setTimeout> | undefined

const say = (text: string): void => {
  clearTimeout(timer)
  said.value = text
  timer = setTimeout(() => (said.value = undefined), SAID_MS)
}

/** Copies a text, and says what it was. */
export const copyText = async (text: string, what: string): Promise<void> => {
  try {
    await navigator.clipboard.writeText(text)
    say(`Copied: ${what}`)
  } catch {
    say("The browser did not allow to copy")
  }
}

/** How a terminal asks for a path of the API. */
export const curlOf = (path: string): string =>
  `curl -H "Authorization: Bearer $ALK_API_KEY" '${location.origin}${path.replaceAll("'", "%27")}'`

export const copyLink = (): void => void copyText(location.href, "the link")

/** Keys that copy the view of a page: as curl of the path that it shows, and as a link. */
export const useCopyKeys = (path: string): void => {
  const keys = useMemo(
    () => [
      {
        key: "c",
        what: "copy the view as curl",
        run: () => void copyText(curlOf(path), "the view as curl")
      },
      { key: "y", what: "copy the link", run: copyLink }
    ],
    [path]
  )
  usePageKeys(keys)
}
