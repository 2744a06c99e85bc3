/** `alk backup`: its arguments, and what it says. */
import { parseArgs } from "node:util"
import type { BackupDone } from "../exports/backup/TakeBackup.ts"
import { bytes, count } from "./terminal/Progress.ts"

export const BACKUP_HELP = `alk backup -o <folder> [--no-keys] [--json] [--quiet]

Copies the topics into a folder while the service runs, with the configuration of the service: with the
embedded broker ALK_DATA_DIR names it, else KAFKA_BROKERS. Into the same folder again it adds only what is
new. The folder holds the secret and the signing key unless --no-keys is given: keep it as you keep them.
`

/** The command was called with something that it does not know. */
export class ArgumentsRefused extends Error {
  override readonly name = "ArgumentsRefused"
}

export interface BackupArguments {
  readonly folder: string
  readonly withKeys: boolean
  readonly json: boolean
  readonly quiet: boolean
}

/** @throws ArgumentsRefused */
export const backupArguments = (args: ReadonlyArray<string>): BackupArguments => {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        output: { type: "string", short: "o" },
        "no-keys": { type: "boolean" },
        json: { type: "boolean" },
        quiet: { type: "boolean", short: "q" }
      }
    })
    if (values.output === undefined || values.output === "") throw new Error("name a folder: -o")
    return {
      folder: values.output,
      withKeys: values["no-keys"] !== true,
      json: values.json === true,
      quiet: values.quiet === true
    }
  } catch (error) {
    throw new ArgumentsRefused(`backup: ${(error as Error).message}`)
  }
}

/** What a backup did, for a program. */
export const backupReport = (folder: string, done: BackupDone) => ({
  folder,
  taken_at: done.manifest.taken_at,
  is_first: done.isFirst,
  new_records: done.records,
  new_files: done.files,
  new_bytes: done.bytes,
  files: done.manifest.parts.reduce((sum, { segments }) => sum + segments.length, 0),
  keys: done.manifest.keys.length > 0,
  heads: done.manifest.heads
})
export type BackupReport = ReturnType<typeof backupReport>

/** The same for a person. */
export const backupLines = (report: BackupReport): string => {
  const heads = report.heads.map(
    ({ chain, sequence_number, tenant_id }) =>
      `  ${tenant_id.padEnd(24)} ${chain.padEnd(7)} up to ${count(sequence_number)}\n`
  )
  return (
    `backup in ${report.folder}, of ${report.taken_at}: ${count(report.new_records)} new records in `
    + `${report.new_files} files (${bytes(report.new_bytes)})\n${heads.join("")}`
  )
}

export const WITHOUT_KEYS =
  "THE BACKUP HAS NO KEYS: without ALK_SECRET and the signing key that the service uses now it can't be "
  + "restored. Keep both elsewhere."

export const WITH_KEYS =
  "the folder holds the secret and the signing key of the service: who reads it can act as the service"
