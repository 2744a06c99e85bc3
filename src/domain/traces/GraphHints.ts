/**
 * What the metadata of a span says about its place in the run beside its parent: ids of tool calls,
 * the step and node of LangGraph, the node of a graph. Metadata holds the attributes of
 * OpenTelemetry in `attributes`; other clients may use the names in the metadata itself. What can't
 * be read, or is too long to be, is passed over.
 *
 * Sources: OpenTelemetry semantic conventions for generative AI (`gen_ai.*.messages`,
 * `gen_ai.tool.call.id`), OpenInference (`llm.*_messages`, `tool_call.id`, `graph.node.*`, and
 * LangGraph's metadata as the JSON text `metadata`), OpenLLMetry (`gen_ai.completion`,
 * `gen_ai.prompt`, `traceloop.association.properties.*`), LangSmith (`langsmith.metadata.*`), the
 * Vercel AI SDK (`ai.toolCall.id`, `ai.response.toolCalls`, `ai.prompt.messages`), LiveKit
 * (`lk.function_tool.id`).
 */
import { defined } from "../Defined.ts"
import { isObject, type JsonObject, type JsonValue } from "../json/Json.ts"
import { JSON_TEXT_MAX, JsonTexts } from "./JsonTexts.ts"
import { TOKEN_NAMES } from "./SpanSummary.ts"
import type { Span } from "./TraceResources.ts"

/** The names of messages; of their parts only type and id matter. */
export const MESSAGE_NAMES = [
  "gen_ai.input.messages",
  "gen_ai.output.messages",
  "ai.prompt.messages"
] as const
const [INPUT_MESSAGES, OUTPUT_MESSAGES, PROMPT_MESSAGES] = MESSAGE_NAMES
/** Where a message has its parts. */
export const PARTS = ["parts", "content"] as const
/** Types of the parts that matter. */
export const ASKING_PART = "tool_call"
export const ANSWERING_PARTS = ["tool_call_response", "tool-result"] as const
/** Where a part has the id of the call. */
export const PART_IDS = ["id", "toolCallId"] as const
/** Run metadata as JSON text. */
export const RUN_METADATA = "metadata"
/** What the names of LangGraph's metadata have in common. */
export const LANGGRAPH_MARK = "langgraph_"

const toolCallNames = [
  "gen_ai.tool.call.id",
  "tool_call.id",
  "tool.id",
  "tool_call_id",
  "ai.toolCall.id",
  "lk.function_tool.id"
]
const ASKED = "tool_calls"
const AI_ASKED = "ai.response.toolCalls"
const ANSWERED = "tool_results"
const NODE = "graph.node.id"
const PARENT_NODE = "graph.node.parent_id"
const prefixes = ["", "traceloop.association.properties.", "langsmith.metadata.", "metadata."]

/** Sources of regular expressions, in the part that RE2 reads the same way. */
const ASKED_NAME =
  "llm[.]output_messages[.][0-9]+[.]message[.]tool_calls[.][0-9]+[.]tool_call[.]id"
  + "|gen_ai[.]completion[.][0-9]+[.]tool_calls[.][0-9]+[.]id"
const ANSWERED_NAME =
  "llm[.]input_messages[.][0-9]+[.]message[.]tool_call_id|gen_ai[.]prompt[.][0-9]+[.]tool_call_id"

const dotted = (name: string): string => name.replaceAll(".", "[.]")
const plainNames = [...toolCallNames, ASKED, AI_ASKED, ANSWERED, NODE, PARENT_NODE, RUN_METADATA]
const langGraphNames = prefixes.flatMap((prefix) =>
  ["step", "node", "triggers"].map((name) => `${prefix}${LANGGRAPH_MARK}${name}`)
)

/** The names of everything that is looked at, tokens included: a regular expression of RE2. */
export const HINT_NAME = `^(?:${[
  ...[...plainNames, ...MESSAGE_NAMES, ...langGraphNames, ...TOKEN_NAMES].map(dotted),
  ASKED_NAME,
  ANSWERED_NAME
].join("|")})$`

const hintName = new RegExp(HINT_NAME)
const askedName = new RegExp(`^(?:${ASKED_NAME})$`)
const answeredName = new RegExp(`^(?:${ANSWERED_NAME})$`)

export interface LangGraphPlace {
  readonly step: number
  readonly node: string
  /** Names of channels; without one it is not known what has set the node off. */
  readonly triggers: ReadonlyArray<string>
}

export interface GraphHints {
  /** The call that the span carries out. */
  readonly toolCallId: string | undefined
  /** Calls that the span has asked for. */
  readonly asked: ReadonlySet<string>
  /** Calls whose results the span was given, those of earlier turns too. */
  readonly answered: ReadonlySet<string>
  readonly langGraph: LangGraphPlace | undefined
  readonly nodeId: string | undefined
  readonly parentNodeId: string | undefined
}

type Place = Readonly<Record<string, unknown>>

/** Characters of an id or a name at most. */
const TEXT_LENGTH_MAX = 1_024
/** Ids of calls asked for, of those answered, and triggers, that a span has at most. */
export const HINT_IDS_MAX = 10_000
/**
 * Characters of all JSON texts of a span that are read: attributes are looked at before they are cut,
 * and messages hold all that a model was told.
 */
const HINT_TEXTS_MAX = 2 * JSON_TEXT_MAX

const isText = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= TEXT_LENGTH_MAX

/** What is read of the texts of one span. */
class Texts {
  readonly #texts = new JsonTexts(HINT_TEXTS_MAX)

  /** A value, or the list or object that its text is; undefined for any other text. */
  structureOf(value: unknown): unknown {
    return typeof value === "string" ? this.#texts.structureOf(value) : value
  }

  listOf(value: unknown): ReadonlyArray<unknown> {
    const found = this.structureOf(value)
    return Array.isArray(found) ? found : []
  }
}

const memberOf = (places: ReadonlyArray<Place>, name: string): unknown => {
  const place = places.find((one) => Object.hasOwn(one, name))
  return place?.[name]
}

const firstText = (places: ReadonlyArray<Place>, names: ReadonlyArray<string>) =>
  names.map((name) => memberOf(places, name)).find(isText)

/** Ids of the parts of a type, over all messages. */
const partIds = (
  messages: unknown,
  types: ReadonlyArray<unknown>,
  texts: Texts
): ReadonlyArray<string> =>
  texts
    .listOf(messages)
    .filter(isObject)
    .flatMap((message) => PARTS.flatMap((name) => texts.listOf(message[name])))
    .flatMap((part) =>
      isObject(part) && types.includes(part["type"])
        ? PART_IDS.map((name) => part[name])
            .filter(isText)
            .slice(0, 1)
        : []
    )

/** Ids of calls that are listed as such, or as objects with an id. */
const listedIds = (list: unknown, texts: Texts): ReadonlyArray<string> =>
  texts.listOf(list).flatMap((one) => {
    if (isText(one)) return [one]
    return isObject(one)
      ? [one["tool_call_id"], one["toolCallId"], one["id"]].filter(isText).slice(0, 1)
      : []
  })

/** Calls that a span has asked for, and those whose results it was given. */
export interface Calls {
  readonly asked: Set<string>
  readonly answered: Set<string>
}

const addAll = (ids: Set<string>, more: ReadonlyArray<string>): void => {
  for (const id of more) if (ids.size < HINT_IDS_MAX) ids.add(id)
}

/** What one attribute says of calls. */
const addCalls = ({ answered, asked }: Calls, name: string, value: unknown, texts: Texts): void => {
  if (name === ASKED || name === AI_ASKED) addAll(asked, listedIds(value, texts))
  else if (name === ANSWERED) addAll(answered, listedIds(value, texts))
  else if (name === OUTPUT_MESSAGES) addAll(asked, partIds(value, [ASKING_PART], texts))
  else if (name === INPUT_MESSAGES || name === PROMPT_MESSAGES)
    addAll(answered, partIds(value, ANSWERING_PARTS, texts))
  else if (isText(value) && name.endsWith("id")) {
    if (answeredName.test(name)) addAll(answered, [value])
    else if (askedName.test(name)) addAll(asked, [value])
  }
}

const callsOf = (places: ReadonlyArray<Place>, texts: Texts): Calls => {
  const calls = { asked: new Set<string>(), answered: new Set<string>() }
  for (const place of places) {
    for (const name of Object.keys(place)) addCalls(calls, name, place[name], texts)
  }
  return calls
}

/** A number of a step, also as its digits. */
const stepOf = (value: unknown): number | undefined => {
  const step = typeof value === "string" && /^[0-9]{1,9}$/.test(value) ? Number(value) : value
  return Number.isSafeInteger(step) ? Number(step) : undefined
}

/** The texts of a list; a list that was written as text by Python has them in quotes. */
const triggersOf = (value: unknown, texts: Texts): ReadonlyArray<string> => {
  const list = texts.structureOf(value)
  if (Array.isArray(list)) return list.filter(isText)
  if (typeof value !== "string" || value.length > JSON_TEXT_MAX) return []
  const quoted = [...value.matchAll(/'([^']+)'|"([^"]+)"/g)].map((match) => match[1] ?? match[2]!)
  return (quoted.length === 0 ? [value] : quoted).filter(isText)
}

const langGraphOf = (places: ReadonlyArray<Place>, texts: Texts): LangGraphPlace | undefined => {
  for (const prefix of prefixes) {
    const at = (name: string) => memberOf(places, `${prefix}${LANGGRAPH_MARK}${name}`)
    const node = at("node")
    const step = stepOf(at("step"))
    if (isText(node) && step !== undefined) {
      return { step, node, triggers: triggersOf(at("triggers"), texts).slice(0, HINT_IDS_MAX) }
    }
  }
  return undefined
}

/** An event of a span, as far as it is looked at. */
export interface HintedEvent {
  readonly name: string
  readonly attributes: JsonObject
}

const MODEL_EVENT = "gen_ai."
const CHOICE = "gen_ai.choice"
const TOOL_MESSAGE = "gen_ai.tool.message"
/** Events with what a model is given; Strands and Bedrock have results of tools in those of users. */
const INPUT_EVENTS: ReadonlyArray<string> = [TOOL_MESSAGE, "gen_ai.user.message"]
/** Members of an event in which messages and their parts are, one inside the other. */
const INSIDE = ["gen_ai.event.content", "body", "message", "content", "parts"]
/** An attribute of Pydantic AI: the events of a span as JSON text. */
const EVENTS = "events"
const EVENT_NAME = "event.name"

/** The event itself and the messages and parts in it. */
function* partsOf(value: unknown, texts: Texts, levels = INSIDE.length): Generator<Place> {
  const found = texts.structureOf(value)
  if (levels === 0) return
  if (Array.isArray(found)) for (const one of found) yield* partsOf(one, texts, levels - 1)
  if (!isObject(found)) return
  yield found
  for (const name of INSIDE)
    if (Object.hasOwn(found, name)) yield* partsOf(found[name], texts, levels - 1)
}

const idIn = (part: unknown, ...names: ReadonlyArray<string>): ReadonlyArray<string> =>
  isObject(part)
    ? names
        .map((name) => part[name])
        .filter(isText)
        .slice(0, 1)
    : []

const askedIn = (part: Place, texts: Texts): ReadonlyArray<string> => [
  ...listedIds(part[ASKED], texts),
  ...idIn(part["toolUse"], "toolUseId"),
  ...(part["type"] === "tool_use" || part["type"] === ASKING_PART ? idIn(part, ...PART_IDS) : [])
]

const answeredIn = (part: Place, isToolMessage: boolean): ReadonlyArray<string> => [
  ...idIn(part["toolResult"], "toolUseId"),
  ...(part["type"] === "tool_result" ? idIn(part, "tool_use_id") : []),
  ...(part["type"] === ANSWERING_PARTS[0] ? idIn(part, ...PART_IDS) : []),
  ...(isToolMessage ? idIn(part, "id", "tool_call_id") : [])
]

/** Calls that the events of a span tell of: their messages are in events, or were until core 1.36. */
export const callsInEvents = (
  events: ReadonlyArray<HintedEvent>,
  attributes: JsonObject
): Calls => {
  const texts = new Texts()
  const calls = { asked: new Set<string>(), answered: new Set<string>() }
  const add = (name: unknown, event: Place): void => {
    if (typeof name !== "string" || !name.startsWith(MODEL_EVENT)) return
    for (const member of MESSAGE_NAMES) addCalls(calls, member, event[member], texts)
    if (name !== CHOICE && !INPUT_EVENTS.includes(name)) return
    for (const part of partsOf(event, texts)) {
      if (name === CHOICE) addAll(calls.asked, askedIn(part, texts))
      else addAll(calls.answered, answeredIn(part, name === TOOL_MESSAGE))
    }
  }
  for (const event of events) add(event.name, event.attributes)
  for (const event of texts.listOf(attributes[EVENTS])) {
    if (isObject(event)) add(event[EVENT_NAME], event)
  }
  return calls
}

/** Everything that the metadata of a span says; what is not said is undefined or empty. */
export const hintsOf = ({ metadata }: Pick<Span, "metadata">): GraphHints => {
  const attributes = metadata["attributes"]
  const own: ReadonlyArray<Place> = isObject(attributes) ? [attributes, metadata] : [metadata]
  const texts = new Texts()
  const run = texts.structureOf(memberOf(own, RUN_METADATA))
  return {
    toolCallId: firstText(own, toolCallNames),
    ...callsOf(own, texts),
    langGraph: langGraphOf(isObject(run) ? [...own, run] : own, texts),
    nodeId: firstText(own, [NODE]),
    parentNodeId: firstText(own, [PARENT_NODE])
  }
}

const hintsWithin = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([name]) => hintName.test(name)))

/** Of metadata what a graph looks at: hints and tokens of the rest are the same. */
export const hintMembers = (metadata: JsonObject): JsonObject => {
  const { attributes } = metadata
  return isObject(attributes)
    ? { ...hintsWithin(metadata), attributes: hintsWithin(attributes) }
    : hintsWithin(metadata)
}

const listIn = (place: Place, name: string): ReadonlyArray<JsonValue> => {
  const list = place[name]
  return Array.isArray(list) ? list : []
}

/** A span that also says what its log records tell of calls, as `namedCalls` has written it. */
export const withCalls = (span: Span, records: ReadonlyArray<JsonObject>): Span => {
  const { metadata } = span
  const more = [ASKED, ANSWERED].flatMap((name) => {
    const told = records.flatMap((record) => listIn(record, name))
    return told.length === 0 ? [] : [[name, [...listIn(metadata, name), ...told]] as const]
  })
  return { ...span, metadata: { ...metadata, ...Object.fromEntries(more) } }
}

/** Calls as members of metadata. */
export const namedCalls = (
  { answered, asked }: Pick<GraphHints, "answered" | "asked">,
  more?: Calls
): JsonObject => {
  const named = (name: string, ids: ReadonlySet<string>): JsonObject =>
    ids.size === 0 ? {} : { [name]: [...ids].slice(0, HINT_IDS_MAX) }
  return {
    ...named(ASKED, new Set([...asked, ...(more?.asked ?? [])])),
    ...named(ANSWERED, new Set([...answered, ...(more?.answered ?? [])]))
  }
}

/**
 * What is said of calls and of LangGraph as members of metadata, which say it even if the values
 * that said it are stored elsewhere.
 */
export const namedHints = (hints: GraphHints, more?: Calls): JsonObject => ({
  ...namedCalls(hints, more),
  ...namedPlace(hints)
})

/** The ids of a span in the same way. */
export const namedIds = ({ nodeId, parentNodeId, toolCallId }: GraphHints): JsonObject =>
  defined({ tool_call_id: toolCallId, [NODE]: nodeId, [PARENT_NODE]: parentNodeId })

const namedPlace = ({ langGraph }: GraphHints): JsonObject => ({
  ...(langGraph === undefined
    ? {}
    : {
        [`${LANGGRAPH_MARK}step`]: langGraph.step,
        [`${LANGGRAPH_MARK}node`]: langGraph.node,
        [`${LANGGRAPH_MARK}triggers`]: langGraph.triggers
      })
})
