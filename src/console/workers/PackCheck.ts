/** Checks an evidence pack beside the page, with the checks that packs carry. Asks no network. */
import { checkBlob, sentenceOf, words } from "../../exports/checker/Browser.ts"
import { keysOfText } from "../../exports/checker/Keys.ts"
import { keyText } from "../../exports/checker/ReportText.ts"
import type { PackAnswer, PackQuestion } from "../parts/PackCheck.ts"

/** What a worker has of the browser. */
declare const self: {
  onmessage: ((message: { readonly data: PackQuestion }) => void) | null
  postMessage(answer: PackAnswer): void
}

/** Milliseconds between two messages of progress. */
const TOLD_MS = 100

const check = async ({ key, pack }: PackQuestion): Promise<PackAnswer> => {
  let bytes = 0
  let toldAt = 0
  const progress = (file: string, length: number): void => {
    bytes += length
    const now = performance.now()
    if (now - toldAt < TOLD_MS) return
    toldAt = now
    self.postMessage({ is: "progress", file, bytes })
  }
  const given = key === "" ? [] : keysOfText(key)
  const report = await checkBlob(pack, { keys: given, progress })
  const isKeyKnown = given.length > 0
  const keys = report.verdict === "unreadable" ? [] : report.keys.map(keyText)
  const word = words[report.verdict]
  return { is: "done", checked: { report, word, sentence: sentenceOf(report), keys, isKeyKnown } }
}

self.onmessage = ({ data }) => {
  check(data).then(
    (answer) => self.postMessage(answer),
    (error) => self.postMessage({ is: "failed", message: String(error) })
  )
}
