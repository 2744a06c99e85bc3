/** `alk restore`: its arguments, and what it says. */
import { parseArgs } from "node:util"
import { type ChainGap, gapLine } from "../domain/backup/BackupGap.ts"
import type { BackupManifest } from "../domain/backup/BackupManifest.ts"
import type { WaitingCommands } from "../exports/backup/VerifyBackup.ts"
import { ArgumentsRefused } from "./Backup.ts"
import { count } from "./terminal/Progress.ts"

export const RESTORE_HELP = `alk restore <folder> [--checkpoint <file>]... [--check] [--json] [--quiet]

Checks a backup and writes it to an empty data folder (ALK_DATA_DIR), or to the cluster that KAFKA_BROKERS
names, if none of its topics holds a record. With --checkpoint, a file that alk chain keep or somebody
else has kept outside, it says what is missing since the backup. With --check it writes nothing.
`

export interface RestoreArguments {
  readonly folder: string
  readonly checkpoints: ReadonlyArray<string>
  readonly checkOnly: boolean
  readonly json: boolean
  readonly quiet: boolean
}

/** @throws ArgumentsRefused */
export const restoreArguments = (args: ReadonlyArray<string>): RestoreArguments => {
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        checkpoint: { type: "string", multiple: true },
        check: { type: "boolean" },
        json: { type: "boolean" },
        quiet: { type: "boolean", short: "q" }
      }
    })
    const [folder, ...more] = positionals
    if (folder === undefined || more.length > 0) throw new Error("name one folder")
    return {
      folder,
      checkpoints: values.checkpoint ?? [],
      checkOnly: values.check === true,
      json: values.json === true,
      quiet: values.quiet === true
    }
  } catch (error) {
    throw new ArgumentsRefused(`restore: ${(error as Error).message}`)
  }
}

export interface RestoreReport {
  readonly folder: string
  readonly taken_at: string
  /** False with --check, and where a kept checkpoint contradicts. */
  readonly restored: boolean
  /** True if it has the MAC of a secret that was not in the folder itself. */
  readonly authenticated: boolean
  readonly records: number
  readonly links_checked: number
  readonly checkpoints_checked: number
  /** What was accepted and not in a chain yet: the next start adds it. */
  readonly waiting: ReadonlyArray<WaitingCommands>
  readonly heads: BackupManifest["heads"]
  readonly gaps: ReadonlyArray<ChainGap>
}

const NOT_AUTHENTICATED =
  "ALK_SECRET is not set: who had the folder in hand can have written another history into it"

/** The report for a person. */
export const restoreLines = (report: RestoreReport): string => {
  const { authenticated, checkpoints_checked, folder, gaps, heads, links_checked } = report
  const { records, restored, waiting } = report
  const done = restored ? `${count(records)} records restored` : "nothing was written"
  return [
    `backup in ${folder}, of ${report.taken_at}: ${done}`,
    `${count(links_checked)} links and ${count(checkpoints_checked)} signed checkpoints hold`,
    ...(authenticated ? [] : [NOT_AUTHENTICATED]),
    ...heads.map(
      ({ chain, sequence_number, tenant_id }) =>
        `  ${tenant_id.padEnd(24)} ${chain.padEnd(7)} up to ${count(sequence_number)}`
    ),
    ...waiting.map(
      ({ commands, tenant_id }) =>
        `${tenant_id}: ${commands} accepted requests were not in the chain yet; the next start adds them`
    ),
    ...gaps.map(gapLine)
  ]
    .map((line) => `${line}\n`)
    .join("")
}
