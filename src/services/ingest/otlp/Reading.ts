/**
 * How an export is read in either encoding: what it may ask for of memory, which lists of it are
 * read element by element, and what becomes of what can't be read. No encoding is read here.
 */
import { create, type DescField, type DescMessage, type MessageShape } from "@bufbuild/protobuf"
import { NotJson } from "../../../domain/json/JsonBytes.ts"
import { Flaws } from "./Flaws.ts"
import type { ExportTraceServiceRequestSchema } from "./gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"

/**
 * Messages in one request, every attribute counting as two: a message may take two bytes on the
 * wire and a hundred times that in memory.
 */
export const MESSAGES_MAX = 1_000_000
/** Resources, scopes, and spans or what a scope has instead: each is read by itself. */
const PARTS_MAX = 65_536
/** Messages in one span, or in what is beside the spans of a scope or resource. */
export const PIECE_MESSAGES_MAX = 40_000
/** Fields in the same, and values in JSON, whether they are known or not. */
export const PIECE_VALUES_MAX = 2 * PIECE_MESSAGES_MAX
/** Members of one object in JSON: no message has as many as a hundred. */
export const MEMBERS_MAX = 1_000
/** Levels of lists that are read element by element: resources, their scopes, and their spans. */
const SPLIT_LEVELS = 3
/** Numbers in lists that count as one message: each may take 32 bytes of memory, and one sent. */
const SCALARS_PER_MESSAGE = 4
/** Messages inside each other: more than an attribute needs that nests as deep as can be stored. */
export const MESSAGE_LEVELS_MAX = 256

export type DecodeCode = "invalid_json" | "invalid_request" | "payload_too_large"

export interface Undecodable {
  readonly problem: { readonly code: DecodeCode; readonly message: string }
}

/** The message of a body, and what could not be read of it. */
export interface ReadRequest<Type extends DescMessage = typeof ExportTraceServiceRequestSchema> {
  readonly request: MessageShape<Type>
  readonly flaws: Flaws
}

/** What a body holds, or what is wrong with the bytes. */
export type Decoded<Type extends DescMessage = typeof ExportTraceServiceRequestSchema> =
  | ReadRequest<Type>
  | Undecodable

export const refuse = (code: DecodeCode, message: string): Undecodable => ({
  problem: { code, message }
})

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : "not a message of this type"

/** Thrown and caught in this file only: too much in a request, or in one record of it. */
export class TooMany extends Error {}
export class TooMuch extends Error {}
export class TooDeep extends Error {
  override readonly message = `a value nests deeper than ${MESSAGE_LEVELS_MAX} messages`
}
export class KeyTwice extends Error {
  override readonly message = "a key is given more than once in its object; send it once"
}
/** What was sent belongs elsewhere, or has another form: it is not lost in silence. */
export class Misplaced extends Error {}

/** Counts messages, and refuses more than fit in memory. */
export class Census {
  readonly flaws = new Flaws()
  /** Spans and the like. */
  records = 0
  #messages = 0
  #parts = 0

  /** A resource, a scope, or a span and the like. */
  addPart(level: number): void {
    this.#parts += 1
    if (level === SPLIT_LEVELS) this.records += 1
    if (this.#parts > PARTS_MAX) {
      throw new TooMany(`more than ${PARTS_MAX} resources, scopes and spans; send less at once`)
    }
  }

  add(messages: number): void {
    this.#messages += messages
    if (this.#messages > MESSAGES_MAX) {
      throw new TooMany(`the request holds more than ${MESSAGES_MAX} messages; send less at once`)
    }
  }
}

export const membersMessage = `an object has more than ${MEMBERS_MAX} members; send OTLP as it is defined`

export const tooManyValues = (): TooMuch =>
  new TooMuch(
    `a span, resource or the like holds more than ${PIECE_VALUES_MAX} values; send less in it`
  )

/** Counts what is read in one step, and refuses what would take long. */
export class Piece {
  readonly #census: Census
  #messages = 0
  #fields = 0

  constructor(census: Census) {
    this.#census = census
  }

  add(level: number): void {
    this.#count(1)
    if (level > MESSAGE_LEVELS_MAX) throw new TooDeep()
  }

  /** Elements of lists that are not messages. */
  addScalars(count: number): void {
    this.#count(count / SCALARS_PER_MESSAGE)
  }

  addField(): void {
    this.addValues(1)
  }

  /** Fields, or values in JSON. */
  addValues(count: number): void {
    this.#fields += count
    if (this.#fields > PIECE_VALUES_MAX) {
      throw tooManyValues()
    }
  }

  #count(messages: number): void {
    this.#census.add(messages)
    this.#messages += messages
    if (this.#messages > PIECE_MESSAGES_MAX) {
      throw new TooMuch(
        `a span, resource or the like holds more than ${PIECE_MESSAGES_MAX} messages; send less in it`
      )
    }
  }
}

/** Why a request can't be read, whose encoding is no matter. */
export const refusalOf = (error: unknown, type: DescMessage): Undecodable => {
  if (error instanceof TooMany || error instanceof TooMuch) {
    return refuse("payload_too_large", error.message)
  }
  if (error instanceof Misplaced || error instanceof TooDeep) {
    return refuse("invalid_request", error.message)
  }
  // The library throws plain errors for every kind of unreadable bytes.
  return refuse("invalid_request", `the body is no ${type.name}: ${reasonOf(error)}`)
}

/**
 * The message in the place of one that can't be read, unless that costs the whole request: what of
 * a resource or scope can be read. Spans are refused, so what was sent of them is not kept.
 */
export const unread = <Type extends DescMessage>(
  type: Type,
  { flaws }: Census,
  level: number,
  error: unknown,
  sent: () => string,
  readable: () => MessageShape<Type> = () => create(type)
): MessageShape<Type> => {
  if (level === 0 || error instanceof TooMany || error instanceof NotJson) throw error
  const isRecord = level === SPLIT_LEVELS
  const message = isRecord ? create(type) : readable()
  const text = isRecord ? "" : sent()
  const isTooMuch = error instanceof TooMuch || error instanceof TooDeep
  flaws.add(message, { kind: "unreadable", message: reasonOf(error), sent: text, isTooMuch })
  return message
}

/** The message of a request of which something can be read. @throws Error */
export const someOf = <A>(request: A, { flaws, records }: Census): { request: A; flaws: Flaws } => {
  const [first] = flaws.all
  if (records === 0 && first !== undefined) throw new Error(first.message)
  return { request, flaws }
}

type ListField = DescField & { readonly message: DescMessage }

/** A message of which a list is read element by element. */
export interface Split {
  readonly list: ListField
  /** Numbers of the list, today's and the one that it had. */
  readonly numbers: ReadonlySet<number>
  /** Fields by today's names and those that they had. */
  readonly byName: ReadonlyMap<string, DescField>
}

/**
 * What scopes were called before OTLP 0.15, with the same fields: lists of them had a number of
 * their own, and were `instrumentationLibrarySpans` and the like.
 */
const OLD_LISTS_NUMBER = 1_000
const oldNameOf = (name: string, word: string): string => name.replace(/^scope(?=[A-Z_]|$)/, word)

const splitBy = (type: DescMessage): Split | undefined => {
  const isList = (field: DescField): field is ListField =>
    field.fieldKind === "list" && field.message !== undefined
  const list = type.fields.find(isList)
  if (list === undefined) return undefined
  const isOfScopes = list.name.startsWith("scope_")
  const names = type.fields.flatMap((field) =>
    [
      field.jsonName,
      field.name,
      oldNameOf(field.jsonName, "instrumentationLibrary"),
      oldNameOf(field.name, "instrumentation_library")
    ].map((name) => [name, field] as const)
  )
  return {
    list,
    numbers: new Set(isOfScopes ? [list.number, OLD_LISTS_NUMBER] : [list.number]),
    byName: new Map(names)
  }
}

const splits = new Map<DescMessage, Split | undefined>()

/** The list that is read element by element, of a message at this level. */
export const splitOf = (type: DescMessage, level: number): Split | undefined => {
  if (level >= SPLIT_LEVELS) return undefined
  if (!splits.has(type)) splits.set(type, splitBy(type))
  return splits.get(type)
}

export const setList = (
  message: object,
  field: DescField,
  elements: ReadonlyArray<unknown>
): void => {
  ;(message as Record<string, unknown>)[field.localName] = elements
}
