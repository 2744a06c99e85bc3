/** `alk forget`: its arguments, and what it says. */
import { parseArgs } from "node:util"
import { ArgumentsRefused } from "./Backup.ts"
import { bytes, count } from "./terminal/Progress.ts"

export const FORGET_HELP = `alk forget plan|apply [--log-dir <folder>]... [--json] [--quiet]
alk forget record <file>

Takes what was erased out of the topics themselves, by rewriting the files of a Kafka broker: plan says
what there is to do, apply does it while the broker is stopped. With the embedded broker the files are in
ALK_DATA_DIR; of another broker, --log-dir names its log.dirs, and ALK_SECRET has to be that of the
service: by it genuine erasures are known. It can be ended at any time: run it again. What it did becomes
an act in alk's own log: with the embedded broker at the next start; else record writes what apply has left
in the file alk-forgotten.json of the log folder, with the configuration of the service.
`

const actions = ["plan", "apply", "record"] as const

export interface ForgetArguments {
  readonly action: (typeof actions)[number]
  /** None: those of the embedded broker. */
  readonly logDirs: ReadonlyArray<string>
  /** Of record. */
  readonly journal: string | undefined
  readonly json: boolean
  readonly quiet: boolean
}

/** @throws ArgumentsRefused */
export const forgetArguments = (args: ReadonlyArray<string>): ForgetArguments => {
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        "log-dir": { type: "string", multiple: true },
        json: { type: "boolean" },
        quiet: { type: "boolean", short: "q" }
      }
    })
    const [asked, journal, ...more] = positionals
    const action = actions.find((one) => one === asked)
    if (action === undefined || more.length > 0) throw new Error("say plan, apply or record")
    if ((journal !== undefined) !== (action === "record")) {
      throw new Error("record, and only that, wants the file that apply has left")
    }
    return {
      action,
      journal,
      logDirs: values["log-dir"] ?? [],
      json: values.json === true,
      quiet: values.quiet === true
    }
  } catch (error) {
    throw new ArgumentsRefused(`forget: ${(error as Error).message}`)
  }
}

/** One partition in which something is to change, or has changed. */
export interface ForgottenPartition {
  readonly topic: string
  readonly partition: number
  readonly segments: number
  /** Of these segments, before. */
  readonly bytes: number
  readonly records_replaced: number
  readonly records_removed: number
}

export interface ForgetReport {
  readonly log_dirs: ReadonlyArray<string>
  readonly applied: boolean
  /** Events and executions whose details were erased, ever. */
  readonly erasures: number
  readonly partitions: ReadonlyArray<ForgottenPartition>
  /** Partitions that stay as they are: `alk.state` does not say which erasures are genuine. */
  readonly partitions_left: ReadonlyArray<number>
}

export const partitionsLeft = (partitions: ReadonlyArray<number>): string =>
  `left as they are: partitions ${partitions.join(", ")}. alk.state of theirs is not in these folders, or`
  + " not whole, or of another ALK_SECRET: it says which erasures are genuine"

const partitionLine = (partition: ForgottenPartition): string =>
  `  ${`${partition.topic}-${partition.partition}`.padEnd(24)} `
  + `${count(partition.records_replaced)} records without details, `
  + `${count(partition.records_removed)} removed, in ${count(partition.segments)} segments `
  + `(${bytes(partition.bytes)})\n`

/** The same for a person. */
export const forgetLines = ({ applied, erasures, partitions }: ForgetReport): string => {
  const of = `of ${count(erasures)} erasures`
  if (partitions.length === 0) return `the topics hold nothing more ${of}\n`
  const did = applied ? `rewritten, because ${of}:` : `to be rewritten, because ${of}:`
  return `${did}\n${partitions.map(partitionLine).join("")}`
}
