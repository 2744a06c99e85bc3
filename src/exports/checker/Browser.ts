/**
 * Checks packs in a browser: for verify.html, which has this in it, and for the page of share links,
 * which runs it in a worker.
 */
import { verifyEd25519 } from "./Ed25519ByHand.ts"
import { type CheckOptions, checkPack } from "./PackCheck.ts"
import { type Chunks, Unreadable } from "./PackFiles.ts"
import type { PackReport, UnreadablePack } from "./Report.ts"
import { type ZipFile, zipSource } from "./Zip.ts"

/** Milliseconds of work after which the page gets a moment to draw. */
const BREATH_MS = 60

async function* chunksOf(stream: ReadableStream<Uint8Array>): Chunks {
  const reader = stream.getReader()
  let breath = performance.now()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
      if (performance.now() - breath < BREATH_MS) continue
      await new Promise((resolve) => setTimeout(resolve))
      breath = performance.now()
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

const inflaterOf = () => {
  try {
    return new DecompressionStream("deflate-raw")
  } catch {
    throw new Unreadable("this browser can't open compressed ZIPs: use a newer one, or verify.py")
  }
}

/** A browser lets go of a file that has changed on the disk. */
export const readable = <A>(reading: Promise<A>, name: string | undefined): Promise<A> =>
  reading.catch(() => {
    throw new Unreadable(`${name} has changed since it was chosen, or is gone: choose it again`)
  })

/** A file as a page or worker has it. */
export type NamedBlob = Blob & { readonly name?: string }

const fileOf = (blob: NamedBlob): ZipFile => ({
  size: blob.size,
  read: async (start, length) =>
    new Uint8Array(await readable(blob.slice(start, start + length).arrayBuffer(), blob.name)),
  stream: (start, length, isPacked) => {
    const stream = blob.slice(start, start + length).stream()
    return chunksOf(isPacked ? stream.pipeThrough(inflaterOf()) : stream)
  }
})

/** The check of the ZIP in a file. */
export const checkBlob = (
  blob: NamedBlob,
  options: CheckOptions
): Promise<PackReport | UnreadablePack> =>
  checkPack(() => zipSource(fileOf(blob)), { verifyEd25519 }, options)

// What is said of a report

/** A verdict in words. */
export const words = {
  authentic: "Authentic",
  consistent: "Consistent, origin not checked",
  tampered: "Tampered with",
  unreadable: "Unreadable"
} as const

/** What is said of a report, in some sentences. */
export const sentenceOf = (report: PackReport | UnreadablePack): string => {
  if (report.verdict === "unreadable") return `No verdict: ${report.message}.`
  if (report.verdict === "authentic") {
    return "Everything that can be checked in this pack agrees, and what you gave shows that the service signed it."
  }
  const replaced = report.keys.find(
    (key) => key.signs_manifest && key.retired_at !== null && key.trusted !== "root"
  )
  if (report.verdict === "consistent" && replaced !== undefined) {
    return `Everything that can be checked in this pack agrees. It does not show who made it: its key ${replaced.key_id} was replaced at ${replaced.retired_at}, and a holder of the replaced key can have signed it since.`
  }
  if (report.verdict === "consistent") {
    return "Everything that can be checked in this pack agrees. Who made it was not checked: that needs the service’s public key, or a checkpoint that you kept. Anyone can make such a pack with a key of their own."
  }
  const count = report.problems_total
  const at = report.problems.find(({ sequence_number: sequence }) => sequence !== null)
  const where = at === undefined ? "" : `, the first event at sequence ${at.sequence_number}`
  return `${count === 1 ? "One thing does" : `${count.toLocaleString("en")} things do`} not hold${where}. Don’t rely on this pack.`
}
