/** `alk rebuild-view`: its arguments, and what it says. */
import { parseArgs } from "node:util"
import { isTenantId } from "../domain/Identifiers.ts"
import type { ViewRebuilt } from "../domain/records/ViewRebuild.ts"
import { ArgumentsRefused } from "./Backup.ts"
import { count } from "./terminal/Progress.ts"

export const REBUILD_HELP = `alk rebuild-view [--tenant <tenant>] [--status] [--json] [--quiet]

Compares everything that ClickHouse shows with the log and mends it, while the service runs and answers.
Rows that are missing are stored again; rows that the log denies are moved to the table set_aside, where
they can be looked at. What the log does not hold any more is not touched. Run it with the configuration
of the service. The projection does the work: if this command is ended, it goes on, and --status says how far it is.
`

export interface RebuildArguments {
  readonly tenantId: string | undefined
  readonly status: boolean
  readonly json: boolean
  readonly quiet: boolean
}

/** @throws ArgumentsRefused */
export const rebuildArguments = (args: ReadonlyArray<string>): RebuildArguments => {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        tenant: { type: "string" },
        status: { type: "boolean" },
        json: { type: "boolean" },
        quiet: { type: "boolean", short: "q" }
      }
    })
    const { json, quiet, status, tenant } = values
    if (tenant !== undefined && !isTenantId(tenant)) {
      throw new Error(`--tenant: ${tenant} is no id of a tenant`)
    }
    if (tenant !== undefined && status === true) throw new Error("--status takes no --tenant")
    return {
      tenantId: tenant,
      status: status === true,
      json: json === true,
      quiet: quiet === true
    }
  } catch (error) {
    throw new ArgumentsRefused(`rebuild-view: ${(error as Error).message}`)
  }
}

/** How far one partition is; undefined before the projection has said something. */
export interface PartitionRebuild {
  readonly partition: number
  readonly rebuilt: ViewRebuilt | undefined
}

const sumOf = (
  partitions: ReadonlyArray<PartitionRebuild>,
  member: "records" | "compared" | "stored" | "set_aside"
): number => partitions.reduce((sum, { rebuilt }) => sum + (rebuilt?.[member] ?? 0), 0)

/** The result, for a program. */
export const rebuildReport = (partitions: ReadonlyArray<PartitionRebuild>) => ({
  done: partitions.every(({ rebuilt }) => rebuilt?.done === true),
  compared: sumOf(partitions, "compared"),
  stored: sumOf(partitions, "stored"),
  set_aside: sumOf(partitions, "set_aside"),
  partitions: partitions.map(({ partition, rebuilt }) => ({
    partition,
    state: rebuilt === undefined ? "waiting" : rebuilt.done ? "done" : "running",
    ...(rebuilt === undefined ? {} : { ...rebuilt, done: undefined })
  }))
})
export type RebuildReport = ReturnType<typeof rebuildReport>

/** The same for a person. */
export const rebuildLines = ({ compared, done, partitions, set_aside, stored }: RebuildReport) => {
  const open = partitions.filter(({ state }) => state !== "done").length
  const what =
    stored + set_aside === 0
      ? "nothing had to be mended"
      : `${count(stored)} rows stored again, ${count(set_aside)} set aside`
  const end = done ? "" : `; ${open} of ${partitions.length} partitions are not done`
  return `${count(compared)} records compared: ${what}${end}\n`
}

/** One line on how far it is. */
export const rebuildProgress = (partitions: ReadonlyArray<PartitionRebuild>): string => {
  const waiting = partitions.filter(({ rebuilt }) => rebuilt === undefined).length
  const compared = `${count(sumOf(partitions, "compared"))} records compared`
  return waiting === partitions.length
    ? "no projection has begun yet: is a process with the role projection running?"
    : compared
}
