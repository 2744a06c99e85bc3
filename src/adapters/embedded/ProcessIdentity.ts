/**
 * What distinguishes a running process from another one with the same number later: pid and start
 * time. It reads /proc, or asks `ps` on systems without it.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { Schema } from "effect"

export class ProcessIdentity extends Schema.Class<ProcessIdentity>("ProcessIdentity")({
  pid: Schema.Int,
  /** Opaque; equal only for the same process on the same boot of the same machine. */
  startedAt: Schema.String
}) {}

const textOf = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** State and start time are after the command's name, which may hold spaces and brackets. */
const startFromProc = (pid: number): string | undefined => {
  const stat = textOf(`/proc/${pid}/stat`)
  const boot = textOf("/proc/sys/kernel/random/boot_id")
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ")
  const [state, startTicks] = [fields?.[0], fields?.[19]]
  return startTicks === undefined || state === "Z" || state === "X"
    ? undefined
    : `${boot?.trim() ?? ""}/${startTicks}`
}

const psColumn = (pid: number, column: string): string | undefined => {
  const { status, stdout } = spawnSync("ps", ["-ww", "-o", `${column}=`, "-p", String(pid)], {
    encoding: "utf8"
  })
  return status === 0 ? stdout.trim() : undefined
}

const startFromPs = (pid: number): string | undefined =>
  psColumn(pid, "stat")?.startsWith("Z") ? undefined : psColumn(pid, "lstart")

const hasProc = existsSync("/proc/self/stat")

/** The identity of a live process; undefined if there is none with that number, or a zombie. */
export const identityOf = (pid: number): ProcessIdentity | undefined => {
  const startedAt = hasProc ? startFromProc(pid) : startFromPs(pid)
  return startedAt === undefined ? undefined : new ProcessIdentity({ pid, startedAt })
}

/** True while that very process runs; another one with the same number does not count. */
export const isRunning = (identity: ProcessIdentity): boolean =>
  identityOf(identity.pid)?.startedAt === identity.startedAt

/** True if the process was started with exactly that argument. */
export const hasArgument = (pid: number, argument: string): boolean =>
  hasProc
    ? (textOf(`/proc/${pid}/cmdline`)?.split("\0").includes(argument) ?? false)
    : ` ${psColumn(pid, "command") ?? ""} `.includes(` ${argument} `)

/** Sends a signal to that very process; false if it is gone. */
export const signal = (identity: ProcessIdentity, name: NodeJS.Signals): boolean => {
  if (!isRunning(identity)) return false
  try {
    return process.kill(identity.pid, name)
  } catch {
    return false
  }
}
