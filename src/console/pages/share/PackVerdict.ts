/** The check of an evidence pack in this browser, beside the page. */
import type { CheckedPack, PackAnswer, PackQuestion } from "../../parts/PackCheck.ts"

const workerUrl = (): string =>
  document.querySelector<HTMLMetaElement>('meta[name="pack-worker"]')?.content ?? ""

/** Checks a pack; rejects where the check itself fails, or was given up by the signal. */
export const checkPack = (
  question: PackQuestion,
  signal: AbortSignal,
  onProgress: (file: string, bytes: number) => void
): Promise<CheckedPack> => {
  const worker = new Worker(workerUrl(), { type: "module" })
  const answered = new Promise<CheckedPack>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<PackAnswer>) => {
      if (data.is === "progress") onProgress(data.file, data.bytes)
      else if (data.is === "done") resolve(data.checked)
      else reject(new Error(data.message))
    }
    worker.onerror = () => reject(new Error("the program that checks packs could not be loaded"))
    signal.addEventListener("abort", () => reject(signal.reason), { once: true })
    worker.postMessage(question)
  })
  return answered.finally(() => worker.terminate())
}
