/** `alk quarantine`: lists, shows, replays and drops commands in quarantine, with the admin token. */
import type { QuarantinedCommand, ShownCommand } from "../../client/gen/Api.d.ts"
import type { Choice } from "../Contexts.ts"
import { CommandFailure, EXIT } from "../Failure.ts"
import { connectAsAdmin } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { type Column, details } from "../terminal/Table.ts"
import { allPages } from "./Pages.ts"

type Options = OutputOptions & Choice
type ActOptions = Options & { readonly reason?: string }

const timeText = (time: string): string => time.slice(0, 19).replace("T", " ")

const COLUMNS: ReadonlyArray<Column<QuarantinedCommand>> = [
  { title: "ID", text: ({ id }) => id },
  { title: "STATE", text: ({ state }) => state },
  { title: "KIND", text: ({ kind }) => kind },
  { title: "BYTES", text: ({ bytes }) => String(bytes) },
  { title: "SINCE", text: ({ quarantined_at }) => timeText(quarantined_at) },
  { title: "REASON", text: ({ reason }) => reason }
]

/** `alk quarantine list`. */
export const listQuarantine = async (
  options: Options & { readonly state: "open" | "replayed" | "dropped" | "all" }
): Promise<void> => {
  const { state } = options
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    let left = 0
    const rows = await allPages<QuarantinedCommand>(async (page) => {
      const answer = await client.request("GET /v1/admin/quarantine", { query: { ...page, state } })
      left = answer.left
      return answer.commands
    })
    if (rows.length === 0 && output.isHuman) output.note(`nothing is in quarantine (${state})`)
    else await output.list(COLUMNS, rows)
    if (left > 0) output.note(`${left} older ones are not listed`)
  })
}

const commandText = (shown: ShownCommand): string =>
  details([
    ["id", shown.id],
    ["state", shown.state],
    ["kind", shown.kind],
    ["reason", shown.reason],
    ["since", shown.quarantined_at],
    ["partition", `${shown.partition}, offset ${shown.command_offset} of alk.commands`],
    ["tenant", shown.tenant_id ?? ""],
    ["receipt", shown.receipt_id ?? ""],
    ["received", shown.received_at ?? ""],
    ["holds", shown.items === undefined ? "" : `${shown.items} items (${shown.command_kind})`],
    ["unreadable", shown.unreadable ?? ""],
    ["bytes", String(shown.bytes)],
    ["settled", shown.settled_at === undefined ? "" : `${shown.settled_at} by ${shown.settled_by}`],
    ["because", shown.settled_reason ?? ""]
  ])

/** `alk quarantine show`; with `raw` the bytes of the command, as far as they are shown. */
export const showQuarantined = async (
  id: string,
  options: Options & { readonly raw?: boolean }
): Promise<void> => {
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    const shown = await client.request("GET /v1/admin/quarantine/{id}", { path: { id } })
    if (options.raw === true) {
      await output.write(Buffer.from(shown.content, "base64"))
      if (shown.truncated) output.note(`the command is longer: ${shown.bytes} bytes`)
    } else if (output.isHuman) await output.write(commandText(shown))
    else await output.document(shown)
  })
}

const reasonOf = ({ reason }: ActOptions) => (reason === undefined ? {} : { reason })

/** `alk quarantine replay`. */
export const replayQuarantined = async (id: string, options: ActOptions): Promise<void> => {
  const client = await connectAsAdmin(options)
  const replay = await withOutput(options, async (output) => {
    const route = "POST /v1/admin/quarantine/{id}/replay"
    const answer = await client.request(route, { path: { id }, body: reasonOf(options) })
    const { receipt_id, status, tenant_id } = answer
    await (output.isHuman
      ? output.write(`${id} of tenant ${tenant_id} is ${status}: receipt ${receipt_id}\n`)
      : output.document(answer))
    return answer
  })
  if (replay.status === "committed") return
  throw new CommandFailure(
    EXIT.failed,
    replay.error?.message ?? "the command failed again",
    "see: alk quarantine list"
  )
}

/** `alk quarantine drop`. */
export const dropQuarantined = async (
  ids: ReadonlyArray<string>,
  options: ActOptions
): Promise<void> => {
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    const dropped: Array<QuarantinedCommand> = []
    for (const id of ids) {
      const route = "POST /v1/admin/quarantine/{id}/drop"
      dropped.push(await client.request(route, { path: { id }, body: reasonOf(options) }))
    }
    await output.list(COLUMNS, dropped)
  })
}
