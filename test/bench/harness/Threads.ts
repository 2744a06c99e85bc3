/**
 * CPU of the program by groups of threads, from /proc: microseconds since the start of each thread.
 * The broker and workers are processes below the program's.
 */
import { readdirSync, readFileSync } from "node:fs"

export const threadGroups = [
  "main thread",
  "main threads of workers",
  "libuv pool",
  "garbage collection",
  "chDB pool",
  "merges",
  "broker",
  "other"
] as const

export type ThreadGroup = (typeof threadGroups)[number]

/** Microseconds by group. */
export type CpuTimes = Readonly<Record<ThreadGroup, number>>

/** Undefined for a process or thread that has ended meanwhile. */
const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** The fields of /proc/PID/stat after the name, which may hold spaces and brackets. */
const statOf = (pid: number): ReadonlyArray<string> | undefined => {
  const text = read(`/proc/${pid}/stat`)
  return text?.slice(text.lastIndexOf(")") + 2).split(" ")
}

const PARENT_FIELD = 1

/** The processes below one, itself first. */
export const processTree = (pid: number): ReadonlyArray<number> => {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), Number(statOf(Number(name))?.[PARENT_FIELD])] as const)
  const below = (one: number): ReadonlyArray<number> => [
    one,
    ...parents.filter(([, parent]) => parent === one).flatMap(([child]) => below(child))
  ]
  return below(pid)
}

export const isBroker = (pid: number): boolean => read(`/proc/${pid}/comm`)?.trim() === "java"

/** Names of threads: Node's own, and those of ClickHouse. */
const GROUP_OF_NAME: ReadonlyArray<readonly [RegExp, ThreadGroup]> = [
  [/^libuv-worker/, "libuv pool"],
  [/V8Worker|^DelayedTaskSche/, "garbage collection"],
  [/^(?:MergeMutate|BgSchPool|BgMBSchPool|BgCommonPool|BgMovePool|Merge)/, "merges"],
  [/^(?:ThreadPool|QueryP|Local|Mark|Part|Load|Async|Conf|Sess|chdb)/i, "chDB pool"],
  // The shell that watches over the broker.
  [/^sh$/, "other"]
]

/** `main`: of which process it is the main thread, if it is one. */
export const groupOf = (name: string, main: "program" | "worker" | undefined): ThreadGroup => {
  const known = GROUP_OF_NAME.find(([pattern]) => pattern.test(name))?.[1]
  if (main === "program") return "main thread"
  return known ?? (main === "worker" ? "main threads of workers" : "other")
}

const MICROS_PER_NANO = 1e-3

/** Threads of one process: microseconds by thread id, with the group. */
const threadsOf = (
  pid: number,
  program: number
): ReadonlyArray<readonly [number, ThreadGroup, number]> => {
  let tids: ReadonlyArray<string> = []
  try {
    tids = readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
  const broker = isBroker(pid)
  return tids.flatMap((tid) => {
    const schedule = read(`/proc/${pid}/task/${tid}/schedstat`)
    const name = read(`/proc/${pid}/task/${tid}/comm`)?.trim()
    if (schedule === undefined || name === undefined) return []
    const main = pid === program ? "program" : "worker"
    const group = broker ? "broker" : groupOf(name, Number(tid) === pid ? main : undefined)
    return [[Number(tid), group, Number(schedule.split(" ")[0]) * MICROS_PER_NANO] as const]
  })
}

/** Watches a process and those below it. Threads that end between two looks are not counted. */
export class CpuWatch {
  readonly #pid: number
  #before: ReadonlyMap<number, number>

  constructor(pid: number) {
    this.#pid = pid
    this.#before = new Map(this.#threads().map(([tid, , micros]) => [tid, micros]))
  }

  #threads(): ReadonlyArray<readonly [number, ThreadGroup, number]> {
    return processTree(this.#pid).flatMap((pid) => threadsOf(pid, this.#pid))
  }

  /** Microseconds since the watch was made, or since the last call. */
  lap(): CpuTimes {
    const times = Object.fromEntries(threadGroups.map((group) => [group, 0])) as Record<
      ThreadGroup,
      number
    >
    const now = this.#threads()
    for (const [tid, group, micros] of now) times[group] += micros - (this.#before.get(tid) ?? 0)
    this.#before = new Map(now.map(([tid, , micros]) => [tid, micros]))
    return times
  }
}

export const sumOf = (times: CpuTimes): number =>
  Object.values(times).reduce((sum, micros) => sum + micros, 0)

export const plus = (left: CpuTimes, right: CpuTimes): CpuTimes =>
  Object.fromEntries(threadGroups.map((group) => [group, left[group] + right[group]])) as Record<
    ThreadGroup,
    number
  >

/** Megabytes of 10^6 bytes that a field of /proc/PID/status gives in KiB, such as VmRSS. */
export const memoryOf = (pid: number, field: "VmRSS" | "VmHWM"): number => {
  const [, kibibytes] = new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(
    read(`/proc/${pid}/status`) ?? ""
  ) ?? [undefined, "0"]
  return (Number(kibibytes) * 1_024) / 1e6
}
