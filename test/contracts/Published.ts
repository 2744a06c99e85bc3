/**
 * The published contracts as a reader gets them: the files below `schemas/json`, compiled by a
 * validator that has nothing to do with the program. Nothing here comes from the generators.
 */
import { readdirSync, readFileSync } from "node:fs"
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js"

export const FOLDER = "schemas/json"
const SUFFIX = ".schema.json"

export const publishedNames: ReadonlyArray<string> = readdirSync(FOLDER)
  .filter((file) => file.endsWith(SUFFIX))
  .map((file) => file.slice(0, -SUFFIX.length))
  .sort()

const isDateTime = (text: string): boolean =>
  !Number.isNaN(Date.parse(text)) && new Date(text).toISOString().slice(0, 19) === text.slice(0, 19)

/** Strict: a keyword or a format that nobody knows is an error. */
export const makeAjv = (): Ajv2020 =>
  new Ajv2020({
    strict: true,
    allErrors: true,
    formats: {
      "date-time": isDateTime,
      int64: { type: "number", validate: Number.isSafeInteger },
      uuid: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
    }
  })

const ajv = makeAjv()
const ids = new Map<string, string>()
for (const name of publishedNames) {
  const schema = JSON.parse(readFileSync(`${FOLDER}/${name}${SUFFIX}`, "utf8")) as {
    readonly $id: string
  }
  ajv.addSchema(schema)
  ids.set(name, schema.$id)
}

const explain = (errors: ReadonlyArray<ErrorObject>): string =>
  errors.map(({ instancePath, message }) => `${instancePath} ${message}`).join("; ")

/** What is wrong with a value by the schema of this name, or `undefined`. */
export const faultIn = (name: string, value: unknown, part?: string): string | undefined => {
  const id = ids.get(name)
  if (id === undefined) throw new Error(`there is no schema ${name}`)
  const validate = ajv.getSchema(part === undefined ? id : `${id}#/$defs/${part}`)
  if (validate === undefined) throw new Error(`the schema ${name} has no part ${part}`)
  return validate(value) === true ? undefined : explain(validate.errors ?? [])
}

/** A record with its bytes read as text, the way `kafka_reader.mjs` prints it. */
export interface PlainRecord {
  readonly key: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly value: Buffer
}

/** Which of these schemas know the record by its key and headers. */
export const kindsOf = (record: PlainRecord, names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.filter(
    (name) =>
      faultIn(name, record.key, "key") === undefined
      && faultIn(name, record.headers, "headers") === undefined
  )

const WINDOW_ENTRY_BYTES = 40

const unpackWindow = (value: Buffer): ReadonlyArray<unknown> =>
  Array.from({ length: value.length / WINDOW_ENTRY_BYTES }, (_, index) => {
    const entry = value.subarray(index * WINDOW_ENTRY_BYTES)
    return {
      key: entry.toString("hex", 0, 16),
      fingerprint: entry.toString("hex", 16, 32),
      number: Number(entry.readBigUInt64BE(32))
    }
  })

const ENTRY_BYTES = 128

/** The events of a command, from where their number is: entry and body of each. */
const unpackEvents = (value: Buffer, start: number): ReadonlyArray<unknown> => {
  const count = value.readUInt32LE(start)
  const bodies = value.subarray(start + 4 + count * ENTRY_BYTES)
  return Array.from({ length: count }, (_, index) => {
    const entry = value.subarray(start + 4 + index * ENTRY_BYTES)
    const offset = entry.readUInt32LE(0)
    const flags = entry[14]!
    return {
      index: entry.readUInt32LE(8),
      id_length: entry.readUInt16LE(12),
      ...(flags & 1
        ? {
            details_salt: entry.toString("hex", 16, 32),
            details_hash: entry.toString("hex", 32, 64)
          }
        : {}),
      content_hash: entry.toString("hex", 64, 96),
      ...(flags & 2
        ? {
            dedup_key: entry.toString("hex", 96, 112),
            fingerprint: entry.toString("hex", 112, 128)
          }
        : {}),
      body: bodies.toString("utf8", offset, offset + entry.readUInt32LE(4))
    }
  })
}

const faultInCommand = (value: Buffer): string | undefined => {
  const headerEnd = 4 + value.readUInt32LE(0)
  const header = JSON.parse(value.toString("utf8", 4, headerEnd)) as { readonly kind: string }
  const lines = value.toString("utf8", headerEnd).split("\n")
  const faults =
    header.kind === "trace"
      ? lines.map((line) => faultIn("command", JSON.parse(line), "traceLine"))
      : unpackEvents(value, headerEnd).map((event) => faultIn("command", event, "event"))
  return faultIn("command", header) ?? faults.find((fault) => fault !== undefined)
}

/** What is wrong with the value of a record, read as the schema of this name says. */
export const faultInValue = (name: string, value: Buffer): string | undefined => {
  switch (name) {
    case "quarantine":
      return faultIn(name, value.toString("base64"))
    case "state-window":
      return value.length % WINDOW_ENTRY_BYTES === 0
        ? faultIn(name, unpackWindow(value))
        : `${value.length} bytes are no whole entries`
    case "command":
      return faultInCommand(value)
    default:
      return faultIn(name, JSON.parse(value.toString()))
  }
}
