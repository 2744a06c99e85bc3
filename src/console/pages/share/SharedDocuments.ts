/**
 * The documents of a shared scope. What was downloaded is kept in this page until it is closed, so
 * that saving or checking it once more uses nothing up.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { ApiFailure } from "../../api/Client.ts"
import { downloadShared, type SharedFile } from "../../api/ShareClient.ts"
import { saveBlob } from "../../parts/SaveFile.ts"

export interface SharedDocument {
  /** True once it was downloaded. */
  readonly isHere: boolean
  /** Bytes that have come so far. */
  readonly received: number
  /** What a reader should know of it. */
  readonly note: string | undefined
  /** The file, downloaded now if it was not before. */
  readonly take: () => Promise<SharedFile>
  readonly save: () => Promise<void>
}

const PDF_PATH = "/v1/share/export/pdf"
const PACK_PATH = "/v1/share/export/evidence-pack"

type Fetch = (path: string) => Promise<SharedFile>

interface Made {
  readonly file: SharedFile
  readonly note?: string
}

const makePdf = async (fetch: Fetch): Promise<Made> => ({ file: await fetch(PDF_PATH) })

/** A service without a browser prints no report; the pack proves as much without it. */
const makePack = async (fetch: Fetch): Promise<Made> => {
  try {
    return { file: await fetch(PACK_PATH) }
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.code !== "pdf_unavailable") throw error
    const file = await fetch(`${PACK_PATH}?pdf=false`)
    return { file, note: "The service can’t print reports now: this pack has no PDF in it." }
  }
}

/** `onUsed` is told when a download may have counted as a use. */
const useDocument = (
  token: string,
  make: (fetch: Fetch) => Promise<Made>,
  onUsed: () => void
): SharedDocument => {
  const [made, setMade] = useState<Made | undefined>(undefined)
  const [received, setReceived] = useState(0)
  const under = useRef<Promise<Made> | undefined>(undefined)
  const [controller] = useState(() => new AbortController())
  useEffect(() => () => controller.abort(), [controller])
  const begin = async (): Promise<Made> => {
    const { signal } = controller
    setReceived(0)
    try {
      const done = await make((path) => downloadShared(token, path, signal, setReceived))
      setMade(done)
      return done
    } finally {
      under.current = undefined
      // Also after a failure: it may be that the link has ended.
      if (!signal.aborted) onUsed()
    }
  }
  // Two buttons may ask for one file at the same time: it is downloaded once.
  const take = async (): Promise<SharedFile> => (made ?? (await (under.current ??= begin()))).file
  const save = async (): Promise<void> => {
    const { blob, name } = await take()
    saveBlob(name, blob)
  }
  return { isHere: made !== undefined, received, note: made?.note, take, save }
}

export const usePdf = (token: string, onUsed: () => void): SharedDocument =>
  useDocument(token, makePdf, onUsed)

export const usePack = (token: string, onUsed: () => void): SharedDocument =>
  useDocument(token, makePack, onUsed)
