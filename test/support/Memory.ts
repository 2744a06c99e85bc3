/** What a process takes of the machine's memory. */
import { readFileSync } from "node:fs"

/** Resident bytes of a process. */
export const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1_024

const SAMPLE_MS = 200

/** The most resident bytes of a process while something happens. */
export const peakWhile = async <A>(pid: number, work: Promise<A>): Promise<number> => {
  let peak = residentBytes(pid)
  const timer = setInterval(() => (peak = Math.max(peak, residentBytes(pid))), SAMPLE_MS)
  try {
    await work
    return peak
  } finally {
    clearInterval(timer)
  }
}
