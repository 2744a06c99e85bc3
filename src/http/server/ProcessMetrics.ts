/**
 * What every process says of itself in `/metrics`, under the names that Prometheus clients use: its
 * processor time, its memory, since when it runs, and what it is. Measured whenever it is shown.
 */
import { readdirSync, readFileSync } from "node:fs"
import { totalmem } from "node:os"
import { getHeapStatistics } from "node:v8"
import { Effect, Metric } from "effect"
import { programVersion } from "../../config/ProgramVersion.ts"
import { counterOf, gaugeOf } from "../../domain/metrics/Metrics.ts"

const MICROS_OF_SECOND = 1_000_000

const cpuSeconds = counterOf("process_cpu_seconds_total")
const residentMemory = gaugeOf("process_resident_memory_bytes")
const startTime = gaugeOf("process_start_time_seconds")
const openFiles = gaugeOf("process_open_fds")
const maxFiles = gaugeOf("process_max_fds")
const heapUsed = gaugeOf("nodejs_heap_size_used_bytes")
const heapTotal = gaugeOf("nodejs_heap_size_total_bytes")
const heapLimit = gaugeOf("nodejs_heap_size_limit_bytes")
const externalMemory = gaugeOf("nodejs_external_memory_bytes")
const memoryLimit = gaugeOf("alk_memory_limit_bytes")
const buildInfo = gaugeOf("alk_build_info")

/** Open files of this process and how many it may have; undefined where there is no /proc. */
const fileCounts = (): { readonly open: number; readonly max: number } | undefined => {
  if (process.platform !== "linux") return undefined
  const [, max] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? []
  return { open: readdirSync("/proc/self/fd").length, max: Number(max ?? Infinity) }
}

/** Bytes that the process may take: those of its control group, if that has a limit. */
const memoryAllowed = (): number => {
  const constrained = process.constrainedMemory()
  const whole = totalmem()
  return constrained > 0 && constrained < whole ? constrained : whole
}

/** Processor time that the counter has. */
let countedCpu = 0

const cpuUsed = (): number => {
  const { system, user } = process.cpuUsage()
  const before = countedCpu
  countedCpu = (system + user) / MICROS_OF_SECOND
  return Math.max(0, countedCpu - before)
}

/** Measures this process. */
export const measureProcess: Effect.Effect<void> = Effect.suspend(() => {
  const versions = { version: programVersion(), node: process.versions.node }
  const { external, heapTotal: total, heapUsed: used, rss } = process.memoryUsage()
  const files = fileCounts()
  return Effect.all(
    [
      Metric.update(cpuSeconds, cpuUsed()),
      Metric.update(residentMemory, rss),
      Metric.update(startTime, performance.timeOrigin / 1_000),
      ...(files === undefined
        ? []
        : [Metric.update(openFiles, files.open), Metric.update(maxFiles, files.max)]),
      Metric.update(heapUsed, used),
      Metric.update(heapTotal, total),
      Metric.update(heapLimit, getHeapStatistics().heap_size_limit),
      Metric.update(externalMemory, external),
      Metric.update(memoryLimit, memoryAllowed()),
      Metric.update(Metric.withAttributes(buildInfo, versions), 1)
    ],
    { discard: true }
  )
})
