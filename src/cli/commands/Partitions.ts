/** `alk partitions`: shows how many there are and adds some, with the admin token. */
import type { AddedPartitions, PartitionCounts } from "../../client/gen/Api.d.ts"
import type { Choice } from "../Contexts.ts"
import { CommandFailure, EXIT } from "../Failure.ts"
import { connectAsAdmin } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { details } from "../terminal/Table.ts"

type Options = OutputOptions & Choice

/** Requests until a growth is done: a process takes new partitions up within seconds. */
const ATTEMPTS = 30
/** Milliseconds between two requests, beside the seconds that each of them waits. */
const PAUSE_MS = 1_000

const text = ({ counts, growing_to, partitions, topics }: PartitionCounts): string => {
  const odd = topics.filter((one) => one.partitions !== partitions)
  return details([
    ["partitions", `${partitions} of each topic`],
    ["new tenants", `over ${counts.at(-1)}`],
    ["earlier ones", counts.length === 1 ? "" : `over ${counts.slice(0, -1).join(", ")}`],
    ["growing to", growing_to === undefined ? "" : `${growing_to}: repeat alk partitions add`],
    ["others", odd.map((one) => `${one.topic} has ${one.partitions}`).join(", ")]
  ])
}

/** `alk partitions show`. */
export const showPartitions = async (options: Options): Promise<void> => {
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    const counts = await client.request("GET /v1/admin/partitions")
    await (output.isHuman ? output.write(text(counts)) : output.document(counts))
  })
}

const planText = ({ topics }: AddedPartitions, to: number): string => {
  const growing = topics.filter(({ partitions }) => partitions < to)
  const lines = growing.map(({ partitions, topic }) => `${topic}: ${partitions} to ${to}\n`)
  return `${lines.join("")}new tenants are spread over ${to} then; nothing was changed\n`
}

/** `alk partitions add`: repeats the request until everything works on the new partitions. */
export const addPartitions = async (
  options: Options & { readonly to: number; readonly dryRun?: boolean }
): Promise<void> => {
  const { dryRun = false, to } = options
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    for (let left = ATTEMPTS; ; left--) {
      const body = { to, ...(dryRun ? { dry_run: true } : {}) }
      const answer = await client.request("POST /v1/admin/partitions", { body })
      if (answer.state === "planned" && output.isHuman) return output.write(planText(answer, to))
      if (answer.state !== "waiting") {
        return output.isHuman ? output.write(text(answer)) : output.document(answer)
      }
      const waiting = answer.waiting_for.join(", ")
      if (left === 1) {
        throw new CommandFailure(
          EXIT.failed,
          `nobody works on the partitions ${waiting} yet; new tenants don't get them before that`,
          `start the missing processes, then: alk partitions add --to ${to}`
        )
      }
      output.note(`waiting for processes to take up the partitions ${waiting}`)
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  })
}
