/**
 * Answers of the service against its own OpenAPI document, read from the published file: the status
 * has to be listed, the media type too, and the body has to have the documented members and no
 * others. The clients of the tests ask it for every answer that they get.
 */
import { readFileSync } from "node:fs"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"

type Json = Record<string, any>

/** What is known of an answer. */
export interface Observed {
  readonly method: string
  /** With its query. */
  readonly target: string
  readonly status: number
  readonly contentType: string | undefined
  readonly text: string
}

const METHODS = ["get", "put", "post", "delete", "patch"]
const JSON_TYPE = "application/json"
const NDJSON_TYPE = "application/x-ndjson"

const document: Json = JSON.parse(
  readFileSync(new URL("../../schemas/openapi.json", import.meta.url), "utf8")
)

/** A schema that refuses members which the document doesn't name. */
const closed = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== "object" || schema === null) return schema
  const inner = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === "examples" || key === "enum" || key === "const" ? value : closed(value)
    ])
  ) as Json
  return inner["type"] === "object"
    && inner["properties"] !== undefined
    && inner["additionalProperties"] === undefined
    ? { ...inner, additionalProperties: false }
    : inner
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
ajv.addFormat("date-time", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
ajv.addFormat("int64", true)
ajv.addFormat("binary", true)
ajv.addSchema(closed(document) as Json, "openapi")

const validators = new Map<string, ValidateFunction>()
const validatorAt = (pointer: ReadonlyArray<string>): ValidateFunction => {
  const path = pointer.map((step) => step.replaceAll("~", "~0").replaceAll("/", "~1"))
  const reference = `openapi#/${path.map(encodeURIComponent).join("/")}`
  const known = validators.get(reference) ?? ajv.compile({ $ref: reference })
  validators.set(reference, known)
  return known
}

/** True if the last parameter of a path takes all the rest of it, slashes too. */
const takesRest = (path: string): boolean =>
  Object.values<Json>(document["paths"][path]).some(({ parameters }) =>
    parameters.some((parameter: Json) => parameter["x-multi-segment"] === true)
  )

const templates = Object.keys(document["paths"])
  .map((path) => ({
    path,
    segments: path.split("/"),
    takesRest: takesRest(path),
    wild: (path.match(/\{/g) ?? []).length
  }))
  .sort((left, right) => left.wild - right.wild)

/** The documented path of a target that has the method, among those with the fewest parameters. */
const findPath = (method: string, target: string): string | undefined => {
  const given = target.replace(/[?#].*$/s, "").split("/")
  const matching = templates.filter(
    ({ segments, takesRest }) =>
      (takesRest ? segments.length <= given.length : segments.length === given.length)
      && segments.every((segment, at) =>
        segment.startsWith("{") ? given[at] !== "" : segment === given[at]
      )
  )
  // What a literal names, no parameter takes.
  const named = matching.filter(({ wild }) => wild === matching[0]?.wild)
  return named.find(({ path }) => document["paths"][path][method] !== undefined)?.path
}

const bodiesOf = (type: string, text: string): ReadonlyArray<unknown> =>
  type === NDJSON_TYPE
    ? text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
    : [JSON.parse(text)]

/** What an answer has that the document denies; undefined if nothing. */
export const deviation = (answer: Observed): string | undefined => {
  const { contentType, status, target, text } = answer
  const isHead = answer.method === "HEAD"
  const method = isHead ? "get" : answer.method.toLowerCase()
  const path = findPath(method, target)
  const where = `${answer.method} ${target.slice(0, 200)} answers ${status}`
  if (path === undefined || !METHODS.includes(method)) return undefined
  const responses = document["paths"][path][method].responses
  const response = responses[status]
  if (response === undefined) return `${where}, which is not documented: ${text.slice(0, 300)}`
  if (isHead || text === "") return undefined
  const type = (contentType ?? "").split(";", 1)[0]!
  const media = response.content?.[type]
  if (media === undefined) return `${where} with an undocumented media type ${type}`
  if (type !== JSON_TYPE && (type !== NDJSON_TYPE || media.schema.type === "string"))
    return undefined
  const pointer = ["paths", path, method, "responses", String(status), "content", type, "schema"]
  const validate = validatorAt(pointer)
  for (const body of bodiesOf(type, text)) {
    if (validate(body)) continue
    const errors = JSON.stringify(validate.errors?.slice(0, 3))
    return `${where} with another body than documented: ${errors} in ${text.slice(0, 600)}`
  }
  return undefined
}

/** Throws if the document denies the answer. */
export const assertConforms = (answer: Observed): void => {
  const found = deviation(answer)
  if (found !== undefined) throw new Error(found)
}
