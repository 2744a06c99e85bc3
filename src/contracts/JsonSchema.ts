/**
 * Contracts as JSON Schema documents (draft 2020-12). The root describes the value of the record,
 * `$defs/key` and `$defs/headers` the rest of it. Knows schemas only, no topic and no file.
 */
import { Schema } from "effect"
import { isObject } from "../domain/json/Json.ts"
import type { RecordContract } from "../domain/records/RecordContract.ts"
import { exampleCheckpoint } from "./ExampleCheckpoint.ts"
import { exampleEvent } from "./ExampleEvent.ts"

export type JsonValue =
  | string
  | number
  | boolean
  | null
  | ReadonlyArray<JsonValue>
  | { readonly [name: string]: JsonValue }

export type JsonRecord = { readonly [name: string]: JsonValue }

export const DIALECT = "https://json-schema.org/draft/2020-12/schema"

/** Identifies a schema; there is nothing to fetch at it. */
export const schemaId = (name: string): string => `urn:alk:schema:v1:${name}`

/** Both bounds hold, so the narrower one says it all. */
const narrower = (name: string, left: JsonValue | undefined, right: JsonValue): JsonValue => {
  if (left === undefined || left === right) return right
  if (typeof left !== "number" || typeof right !== "number") {
    throw new Error(`two checks of one value disagree on ${name}`)
  }
  return name.startsWith("min") ? Math.max(left, right) : Math.min(left, right)
}

/** Effect puts the checks of one value into `allOf`; side by side they are easier to read. */
const flat = (value: JsonValue): JsonValue => {
  if (Array.isArray(value)) return value.map(flat)
  if (!isObject(value)) return value
  const { allOf, ...rest } = value
  const merged: Record<string, JsonValue> = {}
  for (const [name, member] of Object.entries(rest)) merged[name] = flat(member)
  for (const check of Array.isArray(allOf) ? allOf : []) {
    for (const [name, member] of Object.entries(flat(check) as JsonRecord)) {
      merged[name] = narrower(name, merged[name], member)
    }
  }
  return merged
}

interface Described {
  readonly schema: JsonRecord
  readonly definitions: JsonRecord
}

/** The JSON Schema of one schema; objects take no member that it doesn't name, unless it is open. */
export const describe = (schema: Schema.Constraint, isOpen = false): Described => {
  const document = Schema.toJsonSchemaDocument(
    schema,
    isOpen ? undefined : { onExcessProperty: "error" }
  )
  return {
    schema: flat(document.schema as JsonRecord) as JsonRecord,
    definitions: flat(document.definitions as JsonRecord) as JsonRecord
  }
}

/** Values of records as the documents show them, by the name of the contract. */
const examples: Readonly<Record<string, unknown>> = {
  "audit-event": exampleEvent,
  checkpoint: exampleCheckpoint
}

/** The JSON Schema of the value of a record, with an example if there is one. */
export const describeValue = ({ name, value }: RecordContract): Described => {
  const { definitions, schema } = describe(value)
  const example = examples[name]
  return {
    schema: example === undefined ? schema : { ...schema, examples: [example as JsonValue] },
    definitions
  }
}

/** The document in `schemas/json`. */
export const jsonSchemaOf = (contract: RecordContract): JsonRecord => {
  const value = describeValue(contract)
  const others = { key: contract.key, headers: contract.headers, ...contract.parts }
  const described = Object.entries(others).map(([name, part]) => [name, describe(part)] as const)
  return {
    $schema: DIALECT,
    $id: schemaId(contract.name),
    title: contract.title,
    description: contract.description,
    ...value.schema,
    $defs: Object.assign(
      Object.fromEntries(described.map(([name, { schema }]) => [name, schema])),
      ...described.map(([, { definitions }]) => definitions),
      value.definitions
    ) as JsonRecord
  }
}
