/**
 * What models were asked and have answered, and what tools were given and returned, out of the
 * metadata of a span: by the attributes of the OpenTelemetry conventions for generative AI,
 * OpenInference, OpenLLMetry and the Vercel AI SDK. Whatever has another form is left to the JSON.
 * Pure.
 */
import { type Fields, isObject, parseJson } from "../../domain/json/Json.ts"

/** A value that is stored apart: see `GET /api/v1/payloads/{sha256}`. */
export interface ValueRef {
  readonly $ref: string
  readonly bytes: number
  readonly preview: string
  readonly truncated?: true
}

export const isRef = (value: unknown): value is ValueRef =>
  isObject(value)
  && typeof value["$ref"] === "string"
  && typeof value["bytes"] === "number"
  && typeof value["preview"] === "string"

/** References of one object that are shown: as many as an event or a span has. */
const REFS_MAX = 1_000

/** The references in a value, each with its path. */
export const refsIn = (
  value: unknown,
  path = ""
): ReadonlyArray<{ readonly path: string; readonly value: ValueRef }> => {
  if (isRef(value)) return [{ path, value }]
  if (typeof value !== "object" || value === null) return []
  const members = Array.isArray(value)
    ? value.map((item, at) => [`${path}[${at}]`, item] as const)
    : Object.entries(value).map(
        ([key, item]) => [path === "" ? key : `${path}.${key}`, item] as const
      )
  return members.flatMap(([at, item]) => refsIn(item, at)).slice(0, REFS_MAX)
}

export type Part =
  | { readonly kind: "text"; readonly text: string | ValueRef }
  | { readonly kind: "call"; readonly name: string; readonly input: unknown }
  | { readonly kind: "result"; readonly output: unknown }

export interface Message {
  readonly role: string
  readonly parts: ReadonlyArray<Part>
}

export interface Conversation {
  readonly asked: ReadonlyArray<Message>
  readonly answered: ReadonlyArray<Message>
}

/** A list in an attribute, which may be its JSON. */
const listOf = (value: unknown): ReadonlyArray<unknown> | undefined => {
  if (Array.isArray(value)) return value
  if (typeof value !== "string" || !/^\s*\[/.test(value)) return undefined
  try {
    const read = parseJson(value)
    return Array.isArray(read) ? read : undefined
  } catch {
    return undefined
  }
}

/** A value in an attribute that may be its JSON. */
export const readValue = (value: unknown): unknown => {
  if (typeof value !== "string" || !/^\s*[[{"]/.test(value)) return value
  try {
    return parseJson(value)
  } catch {
    return value
  }
}

const textPart = (text: unknown): ReadonlyArray<Part> =>
  typeof text === "string"
    ? text === ""
      ? []
      : [{ kind: "text", text }]
    : isRef(text)
      ? [{ kind: "text", text }]
      : []

const nameOf = (value: unknown): string => (typeof value === "string" ? value : "unknown")

/** A part of a message as one of the conventions writes it in JSON. */
const partOf = (part: unknown): ReadonlyArray<Part> => {
  if (!isObject(part)) return textPart(part)
  switch (part["type"]) {
    case "text":
    case "reasoning":
      return textPart(part["content"] ?? part["text"])
    case "tool_call":
      return [{ kind: "call", name: nameOf(part["name"]), input: part["arguments"] }]
    case "tool_use":
      return [{ kind: "call", name: nameOf(part["name"]), input: part["input"] }]
    case "tool-call":
      return [
        { kind: "call", name: nameOf(part["toolName"]), input: part["input"] ?? part["args"] }
      ]
    case "tool_call_response":
      return [{ kind: "result", output: part["response"] ?? part["result"] }]
    case "tool_result":
      return [{ kind: "result", output: part["content"] }]
    case "tool-result":
      return [{ kind: "result", output: part["output"] ?? part["result"] }]
    default:
      return [{ kind: "result", output: part }]
  }
}

const messageOf = (message: unknown): ReadonlyArray<Message> => {
  if (!isObject(message)) return []
  const content = message["parts"] ?? message["content"]
  const parts = Array.isArray(content)
    ? content.flatMap(partOf)
    : isObject(content) && !isRef(content)
      ? partOf(content)
      : textPart(content)
  const calls = (listOf(message["tool_calls"]) ?? []).flatMap(callOf)
  return [{ role: nameOf(message["role"]), parts: [...parts, ...calls] }]
}

/** A call as OpenAI writes it, or the Vercel AI SDK. */
const callOf = (call: unknown): ReadonlyArray<Part> => {
  if (!isObject(call)) return []
  const own = isObject(call["function"]) ? call["function"] : call
  const name = own["name"] ?? own["toolName"]
  const input = own["arguments"] ?? own["input"] ?? own["args"]
  return name === undefined ? [] : [{ kind: "call", name: nameOf(name), input: readValue(input) }]
}

const messagesAt = (attributes: Fields, name: string): ReadonlyArray<Message> => {
  const value = attributes[name]
  if (isRef(value)) return [{ role: "messages", parts: [{ kind: "text", text: value }] }]
  return (listOf(value) ?? []).flatMap(messageOf)
}

/** Members of lists that were written as one attribute for each: `prefix.0.role`, `prefix.0.content`. */
const numbered = (attributes: Fields, prefix: string): ReadonlyArray<Fields> => {
  const members = new Map<number, Record<string, unknown>>()
  for (const [name, value] of Object.entries(attributes)) {
    if (!name.startsWith(`${prefix}.`)) continue
    const [, place, rest] = /^(\d{1,6})\.(.+)$/.exec(name.slice(prefix.length + 1)) ?? []
    if (place === undefined || rest === undefined) continue
    const own = members.get(Number(place)) ?? {}
    own[rest] = value
    members.set(Number(place), own)
  }
  return [...members].sort(([left], [right]) => left - right).map(([, member]) => member)
}

const withoutPrefix = (member: Fields, prefix: string): Fields =>
  Object.fromEntries(
    Object.entries(member).map(([name, value]) => [
      name.startsWith(prefix) ? name.slice(prefix.length) : name,
      value
    ])
  )

/** A message whose members are attributes, of OpenInference or OpenLLMetry. */
const flatMessage = (member: Fields): Message => {
  const own = withoutPrefix(member, "message.")
  const contents = numbered(own, "contents").flatMap((content) =>
    textPart(withoutPrefix(content, "message_content.")["text"])
  )
  const listed = listOf(own["content"])
  const content =
    listed?.every(isObject) === true ? listed.flatMap(partOf) : textPart(own["content"])
  const calls = numbered(own, "tool_calls").flatMap((call): ReadonlyArray<Part> => {
    const { arguments: given, name } = withoutPrefix(
      withoutPrefix(call, "tool_call."),
      "function."
    ) as { readonly name?: unknown; readonly arguments?: unknown }
    return name === undefined ? [] : [{ kind: "call", name: nameOf(name), input: readValue(given) }]
  })
  const isResult = own["role"] === "tool" || own["tool_call_id"] !== undefined
  const said: ReadonlyArray<Part> = contents.length > 0 ? contents : content
  const parts = isResult
    ? said.map(
        (part): Part => (part.kind === "text" ? { kind: "result", output: part.text } : part)
      )
    : said
  return { role: nameOf(own["role"]), parts: [...parts, ...calls] }
}

const flatMessages = (attributes: Fields, ...prefixes: ReadonlyArray<string>) =>
  prefixes.flatMap((prefix) => numbered(attributes, prefix).map(flatMessage))

/** The prompt of a call of the Vercel AI SDK that has no messages of its own. */
const vercelPrompt = (attributes: Fields): ReadonlyArray<Message> => {
  const prompt = readValue(attributes["ai.prompt"])
  if (!isObject(prompt)) return []
  const system = textPart(prompt["system"])
  const asked = textPart(prompt["prompt"])
  return [
    ...(system.length === 0 ? [] : [{ role: "system", parts: system }]),
    ...(asked.length === 0 ? [] : [{ role: "user", parts: asked }]),
    ...(listOf(prompt["messages"]) ?? []).flatMap(messageOf)
  ]
}

const vercelAnswer = (attributes: Fields): ReadonlyArray<Message> => {
  const calls = (listOf(attributes["ai.response.toolCalls"]) ?? []).flatMap(callOf)
  const parts = [...textPart(attributes["ai.response.text"]), ...calls]
  return parts.length === 0 ? [] : [{ role: "assistant", parts }]
}

const firstOf = (...ways: ReadonlyArray<() => ReadonlyArray<Message>>): ReadonlyArray<Message> => {
  for (const way of ways) {
    const found = way()
    if (found.length > 0) return found
  }
  return []
}

/** Where a span has its attributes: of OpenTelemetry in `attributes`, else the metadata itself. */
export const attributesOf = (metadata: Fields): Fields =>
  isObject(metadata["attributes"]) ? metadata["attributes"] : metadata

/** Undefined if the span tells of no messages. */
export const conversationOf = (metadata: Fields): Conversation | undefined => {
  const attributes = attributesOf(metadata)
  const instructions = (listOf(attributes["gen_ai.system_instructions"]) ?? []).flatMap(partOf)
  const system = instructions.length === 0 ? [] : [{ role: "system", parts: instructions } as const]
  const asked = firstOf(
    () => messagesAt(attributes, "gen_ai.input.messages"),
    () => flatMessages(attributes, "llm.input_messages"),
    () => flatMessages(attributes, "gen_ai.prompt"),
    () => messagesAt(attributes, "ai.prompt.messages"),
    () => vercelPrompt(attributes)
  )
  const answered = firstOf(
    () => messagesAt(attributes, "gen_ai.output.messages"),
    () => flatMessages(attributes, "llm.output_messages"),
    () => flatMessages(attributes, "gen_ai.completion"),
    () => vercelAnswer(attributes)
  )
  return asked.length + answered.length === 0
    ? undefined
    : { asked: [...system, ...asked], answered }
}

const inputNames = [
  "gen_ai.tool.call.arguments",
  "ai.toolCall.args",
  "input.value",
  "tool.parameters",
  "traceloop.entity.input",
  "ai.value",
  "ai.values",
  "input",
  "arguments"
]
const outputNames = [
  "gen_ai.tool.call.result",
  "ai.toolCall.result",
  "output.value",
  "traceloop.entity.output",
  "output",
  "result"
]

const firstAt = (attributes: Fields, names: ReadonlyArray<string>): unknown => {
  const name = names.find((one) => Object.hasOwn(attributes, one))
  return name === undefined ? undefined : readValue(attributes[name])
}

/** What was given to a tool, an agent or a step, and what came back; undefined where it says nothing. */
export const inputAndOutput = (
  metadata: Fields
): { readonly input: unknown; readonly output: unknown } => {
  const attributes = attributesOf(metadata)
  return { input: firstAt(attributes, inputNames), output: firstAt(attributes, outputNames) }
}
