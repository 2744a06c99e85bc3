/**
 * JSON bodies as schemas: what the OpenAPI document shows is what is read. What a schema refuses is
 * refused with the name of the field and what its value must be.
 */
import { Schema, SchemaAST, type SchemaIssue } from "effect"
import { isText } from "../../domain/events/AuditEvent.ts"
import { isObject, type JsonObject } from "../../domain/json/Json.ts"
import { parseStrict } from "../../domain/json/StrictJson.ts"
import { unknownField } from "../../domain/NearestName.ts"
import { ApiError, invalid } from "../messages/ApiError.ts"

/** Bytes of a body without events at most. */
export const BODY_BYTES_MAX = 65_536
/** Characters of an unknown field's name that an error repeats. */
const FIELD_LENGTH_MAX = 128

const EXPECTED = "alk/http/expected"

/** A schema with what a value must be, also where it is missing or of another type. */
export const mustBe = <S extends Schema.Top>(expected: string, schema: S): S => {
  const annotation = { [EXPECTED]: expected }
  return schema.annotate(annotation).annotateKey(annotation) as unknown as S
}

/** A member with what it must be where it is missing. */
export const member = <S extends Schema.Top>(expected: string, schema: S): S =>
  schema.annotateKey({ [EXPECTED]: expected }) as unknown as S

/** Of what clients send: `null` means that it is absent. */
export const optionalInput = <S extends Schema.Constraint>(schema: S) =>
  Schema.optionalKey(Schema.NullOr(schema))

/** Text of 1 to `lengthMax` characters; a character may be two UTF-16 units. */
export const textInput = (lengthMax: number, description: string) =>
  mustBe(
    `a string of 1 to ${lengthMax} characters`,
    Schema.String.check(
      Schema.makeFilter((text: string) => text !== "" && isText(text, lengthMax), {
        toJsonSchema: () => ({ minLength: 1, maxLength: lengthMax })
      })
    ).annotate({ description })
  )

/** An integer from 1 to `maximum`. */
export const integerInput = (maximum: number) =>
  mustBe(
    `an integer from 1 to ${maximum}`,
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))
  )

type Annotations = Readonly<Record<string, unknown>> | undefined

const expectedIn = (annotations: Annotations): string | undefined =>
  annotations?.[EXPECTED] as string | undefined

/** What a value of another type must be. */
const expectedOf = (ast: SchemaAST.AST): string | undefined => {
  const expected = expectedIn(SchemaAST.resolve(ast))
  if (expected !== undefined) return expected
  switch (ast._tag) {
    case "Arrays":
      return SchemaAST.resolve(ast)?.expected as string | undefined
    case "Objects":
      return "an object"
    case "String":
      return "a string"
    default:
      return undefined
  }
}

/** Where a value is wrong, and what it must be: the words of the outermost schema that has some. */
const faultOf = (
  issue: SchemaIssue.Issue,
  path: string
): { readonly path: string; readonly expected: string | undefined } => {
  switch (issue._tag) {
    case "Pointer": {
      const [key] = issue.path
      const name = typeof key === "number" ? `[${key}]` : `${path === "" ? "" : "."}${String(key)}`
      return faultOf(issue.issue, path + name)
    }
    case "Composite": {
      const expected = expectedIn(SchemaAST.resolve(issue.ast))
      return expected === undefined ? faultOf(issue.issues[0], path) : { path, expected }
    }
    case "AnyOf": {
      const schemas = [issue.ast, ...issue.ast.types]
      const whole = schemas.map((one) => expectedIn(SchemaAST.resolve(one))).find((one) => one)
      const [first] = issue.issues
      if (whole === undefined && first !== undefined) return faultOf(first, path)
      return { path, expected: whole ?? schemas.map(expectedOf).find((one) => one) }
    }
    case "InvalidType":
      return { path, expected: expectedOf(issue.ast) }
    case "MissingKey":
      return { path, expected: expectedIn(issue.annotations) }
    case "Filter":
      return { path, expected: issue.filter.annotations?.expected }
    default:
      return { path, expected: undefined }
  }
}

/** The value as its schema reads it, at a path of the body; throws ApiError. */
export const readAs = <A>(schema: Schema.Decoder<A>, value: unknown, path = ""): A => {
  const read = Schema.decodeUnknownResult(schema)(value)
  if (read._tag === "Success") return read.success
  const fault = faultOf(read.failure.issue, path)
  throw invalid(fault.path, `must be ${fault.expected ?? "of another type"}`)
}

/** Throws ApiError for the first name that is not known. */
export const refuseUnknown = (
  names: ReadonlyArray<string>,
  known: ReadonlyArray<string>,
  what: string
): void => {
  const unknown = names.find((name) => !known.includes(name))
  if (unknown === undefined) return
  throw invalid(unknown.slice(0, FIELD_LENGTH_MAX), unknownField(unknown, known, what))
}

/** A body that can't be read as a whole. */
const unreadable = (code: string, message: string): ApiError =>
  new ApiError({ code: code === "invalid_json" ? "invalid_json" : "invalid_request", message })

/** The JSON object in a body, whose members are known; throws ApiError. */
export const objectOf = (bytes: Buffer, known: ReadonlyArray<string>, what: string): JsonObject => {
  const read = parseStrict(bytes)
  if ("problem" in read) throw unreadable(read.problem.code, read.problem.message)
  const { value } = read
  if (!isObject(value)) throw invalid("body", "must be a JSON object")
  refuseUnknown(Object.keys(value), known, what)
  return value as JsonObject
}

/** What a body says; throws ApiError. */
export const bodyOf = <F extends Schema.Struct.Fields>(
  schema: Schema.Struct<F> & Schema.Decoder<Schema.Struct<F>["Type"]>,
  what: string
) => {
  const known = Object.keys(schema.fields)
  return (bytes: Buffer): Schema.Struct<F>["Type"] => readAs(schema, objectOf(bytes, known, what))
}
