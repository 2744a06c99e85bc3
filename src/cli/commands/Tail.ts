/** `alk tail`: events as they are committed, over as many connections as it takes. */
import type { Client } from "../../client/Client.ts"
import type { AuditEvent } from "../../client/gen/Api.d.ts"
import type { Choice } from "../Contexts.ts"
import { type FilterOptions, queryOf } from "../Filters.ts"
import { connect } from "../Session.ts"
import { untilInterrupted } from "../terminal/Interrupts.ts"
import { type Output, type OutputOptions, withOutput } from "../terminal/Output.ts"
import { plain } from "../terminal/Table.ts"

interface TailOptions extends FilterOptions, OutputOptions, Choice {
  readonly after?: number
  readonly limit: number
}

const lineOf = ({ action, actor, outcome, resource, sequence_number, timestamp }: AuditEvent) =>
  plain(
    `${sequence_number}  ${timestamp.slice(11, 23)}  ${actor.type}:${actor.id}  ${action}  `
      + `${resource.type}:${resource.id}  ${outcome}`
  )

/** Says when the connection is lost, and when it is back. */
const reporter = (output: Output) => {
  let isLost = false
  return (state: "live" | Error) => {
    if (state !== "live") {
      if (!isLost) output.note(`alk: ${state.message}; trying again`)
      isLost = true
    } else if (isLost) {
      output.note("alk: connected again; nothing was missed")
      isLost = false
    }
  }
}

/** Events until the limit, or until the signal. */
const follow = async (client: Client, options: TailOptions, output: Output): Promise<void> => {
  const { after, limit } = options
  let seen = 0
  const events = client.tail(queryOf(options), {
    signal: untilInterrupted(),
    onConnection: reporter(output),
    ...(after === undefined ? {} : { after })
  })
  for await (const event of events) {
    await (output.isHuman ? output.write(`${lineOf(event)}\n`) : output.document(event))
    seen += 1
    if (seen === limit) return
  }
}

/** `alk tail`: Ctrl-C is how it is meant to end. */
export const tailEvents = async (options: TailOptions): Promise<void> => {
  const client = await connect(options)
  await withOutput(options, (output) => follow(client, options, output), { endsBySignal: true })
}
