/** What a process takes of the machine's memory. */
import { readFileSync } from "node:fs"

/** Resident bytes of a process. */
export const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1_024
