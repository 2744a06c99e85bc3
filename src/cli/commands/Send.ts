/** `alk send`: one event from options or JSON, recorded before the command ends. */
import type { EventInput } from "../../client/events/EventInput.ts"
import { isObject } from "../../domain/json/Json.ts"
import { jsonOf } from "../Arguments.ts"
import type { Choice } from "../Contexts.ts"
import { usage } from "../Failure.ts"
import { connect } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { standardInput } from "../terminal/Prompt.ts"

interface SendOptions extends OutputOptions, Choice {
  readonly actor?: string
  readonly actorType: string
  readonly action?: string
  readonly resource?: string
  readonly resourceType?: string
  readonly outcome: string
  readonly metadata?: string
  readonly id?: string
}

const EXAMPLE =
  "alk send --actor alice --action document.read --resource doc-1 --resource-type document"

/** The event that the options describe. Throws CommandFailure, which names the option. */
export const eventOfOptions = (options: SendOptions): unknown => {
  const required = ["actor", "action", "resource", "resourceType"] as const
  for (const name of required) {
    if (options[name] !== undefined) continue
    const option = name === "resourceType" ? "resource-type" : name
    throw usage(`--${option}: required, unless you give the event as JSON`, EXAMPLE)
  }
  const { action, actor, actorType, id, metadata, outcome, resource, resourceType } = options
  return {
    ...(id === undefined ? {} : { id }),
    actor: { id: actor, type: actorType },
    action,
    resource: { id: resource, type: resourceType },
    outcome,
    ...(metadata === undefined ? {} : { metadata: jsonOf("--metadata", metadata) })
  }
}

const eventOf = async (text: string | undefined, options: SendOptions): Promise<unknown> => {
  if (text === undefined) return eventOfOptions(options)
  const event = jsonOf("event", text === "-" ? await standardInput() : text)
  if (!isObject(event)) throw usage("event: must be a JSON object; alk ingest sends many")
  return event
}

/** `alk send`. */
export const sendEvent = async (text: string | undefined, options: SendOptions): Promise<void> => {
  // The service says what is wrong with an event better than a check here would.
  const input = (await eventOf(text, options)) as EventInput
  const client = await connect(options)
  await withOutput(options, async (output) => {
    const { event, id, sequence_number } = await client.record(input)
    if (output.isHuman) await output.write(`${id} is number ${sequence_number} of the chain\n`)
    else await output.document(event ?? { id, sequence_number })
  })
}
