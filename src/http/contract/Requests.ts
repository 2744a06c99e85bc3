/**
 * What a request holds, as schemas: the query, and the ids in a path. Each reads itself, says how
 * it is refused, and describes itself for the OpenAPI document.
 */
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"
import { isClientId } from "../../domain/Identifiers.ts"
import { ApiError, notFound, refusable } from "../messages/ApiError.ts"
import {
  type DescribedParameter,
  type GivenCondition,
  type Pairs,
  type Parameters,
  type QueryTable,
  readTexts,
  type ValuesOf
} from "../messages/QueryParameters.ts"

/** The refusal of a value, as an issue of its schema. */
const refused = (refusal: ApiError): SchemaIssue.Issue => new SchemaIssue.InvalidValue({ refusal })

/** The refusal in an issue; undefined if a schema without one has found it. */
export const refusalIn = (issue: SchemaIssue.Issue): ApiError | undefined => {
  if (issue._tag === "InvalidValue") {
    const refusal = issue.annotations?.["refusal"]
    return refusal instanceof ApiError ? refusal : undefined
  }
  if ("issue" in issue) return refusalIn(issue.issue)
  const [first] = "issues" in issue ? issue.issues : []
  return first === undefined ? undefined : refusalIn(first)
}

/** A plain function that throws ApiError where it refuses. */
const attempt = <A>(evaluate: () => A): Effect.Effect<A, SchemaIssue.Issue> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(evaluate())
    } catch (error) {
      return error instanceof ApiError ? Effect.fail(refused(error)) : Effect.die(error)
    }
  })

/** Members of a parameter's JSON Schema that say more of the parameter than of its value. */
export const REQUIRED_MARK = "x-required"
export const EXPLODED_MARK = "x-exploded"

/** The text of a parameter, or those of one that is repeated. */
const Texts = Schema.Union([Schema.String, Schema.Array(Schema.String)])

/** Text, and in the document what the text means. */
const documented = (meaning: Readonly<Record<string, unknown>>) =>
  Schema.optionalKey(
    Texts.check(Schema.makeFilter(() => true, { toJsonSchema: () => ({ ...meaning }) }))
  )

const documentedParameter = ({ description, example, required, schema }: DescribedParameter) =>
  documented({
    ...schema,
    description,
    ...(example === undefined ? {} : { examples: [example] }),
    ...(required === undefined ? {} : { [REQUIRED_MARK]: true })
  })

/** OpenAPI can't name `metadata.<path>`; an exploded object is the nearest it has. */
const metadataConditions = documented({
  type: "object",
  propertyNames: { pattern: "^metadata\\.[^!<>=\\\\]", maxLength: 256 },
  additionalProperties: { type: "string", minLength: 1 },
  description:
    "Conditions on metadata, each a parameter of its own: `metadata.<path>=<value>`; also with "
    + "`!=`, and with `>`, `>=`, `<` and `<=` for numbers. Dots walk "
    + "nested objects, a key that holds the dots is tried first; at most 6 segments. Strings are "
    + "compared as they are, numbers, booleans and null by their JSON text, an array matches if "
    + "one of its elements does, as does an array in it. Dots don't walk into the objects of an "
    + "array, and an object matches nothing. `*` after a value asks for what starts with it, `*` "
    + "alone for what is there; a comma is part of a value, and a repeated parameter asks for one "
    + "of its values.",
  examples: [{ "metadata.ip": "203.0.113.9" }],
  [EXPLODED_MARK]: true
})

type TextsByName = Readonly<Record<string, string | ReadonlyArray<string>>>

/** The texts of a query, by the names of the parameters; a condition's name may have a sign. */
const textsOf = ({ conditions, parameters }: QueryTable) => {
  const all = { ...conditions, ...parameters }
  const named = Object.entries(all).map(([name, parameter]) => [
    name,
    documentedParameter(parameter)
  ])
  const ofMetadata = conditions === undefined ? {} : { metadata: metadataConditions }
  const fields: Schema.Struct.Fields = { ...Object.fromEntries(named), ...ofMetadata }
  const struct = Schema.Struct(fields)
  return conditions === undefined
    ? struct
    : Schema.StructWithRest(struct, [Schema.Record(Schema.String, Texts)])
}

const pairsIn = (texts: TextsByName): Pairs =>
  Object.entries(texts).flatMap(([name, text]) =>
    typeof text === "string" ? [[name, text] as const] : text.map((one) => [name, one] as const)
  )

const TABLE = "alk/http/QueryTable"

/** A query whose texts are read by `decode`, which throws ApiError. */
const querySchema = <A>(
  table: QueryTable,
  decode: (texts: Pairs) => A
): Schema.Codec<A, TextsByName> => {
  const isRead = (_value: unknown): _value is A => true
  const schema = Schema.declare(isRead, { [TABLE]: table }).pipe(
    Schema.encodeTo(textsOf(table), {
      decode: SchemaGetter.transformEffect((texts) =>
        attempt(() => decode(pairsIn(texts as TextsByName)))
      ),
      encode: SchemaGetter.forbidden(() => "a query is only read")
    })
  )
  return schema as unknown as Schema.Codec<A, TextsByName>
}

/** What a route knows of its query beyond the parameters. */
interface QueryOptions<P extends Parameters, A> extends Omit<QueryTable, "parameters"> {
  /** What the values mean to the route; throws ApiError. */
  readonly read?: (
    values: ValuesOf<P>,
    conditions: ReadonlyArray<GivenCondition>,
    /** When the query is read, in canonical microsecond form. */
    now: string
  ) => A
}

const readerOf = <P extends Parameters, A>(
  parameters: P,
  read: QueryOptions<P, A>["read"] = (values) => values as A
) => {
  return (texts: Pairs): A => {
    const { conditions, now, values } = readTexts(parameters, texts)
    return read(values, conditions, now)
  }
}

/** The query of an endpoint: the values of its parameters, or what the route reads in them. */
export const queryOf = <P extends Parameters, A = ValuesOf<P>>(
  parameters: P,
  { read, ...known }: QueryOptions<P, A> = {}
) => querySchema({ ...known, parameters }, readerOf(parameters, read))

/** The same for a route that refuses something else first: read when its handler asks for it. */
export const lateQueryOf = <P extends Parameters, A = ValuesOf<P>>(
  parameters: P,
  { read, ...known }: QueryOptions<P, A> = {}
) => {
  const readNow = readerOf(parameters, read)
  return querySchema({ ...known, parameters }, (texts) => refusable(() => readNow(texts)))
}

/** The parameters that an endpoint knows. One without a query has none. */
export const queryTableOf = ({ query }: HttpApiEndpoint.Top): QueryTable =>
  (query?.ast.annotations?.[TABLE] as QueryTable | undefined) ?? { parameters: {} }

/** A parameter of a path, all of whose other values name nothing. */
export const pathParameter = (
  description: string,
  what: string,
  isOne: (text: string) => boolean,
  example: string
) =>
  Schema.String.annotate({ description, examples: [example] }).check(
    Schema.makeFilter((text) => (isOne(text) ? undefined : refused(notFound(what))))
  )

/** The id of something in a path; what can be no id of a client names nothing. */
export const pathId = (what: string, example: string) =>
  pathParameter(`Id of the ${what}, percent-encoded.`, what, isClientId, example)

/** What the handler of an endpoint is given. */
export type RequestOf<Endpoint> = Omit<HttpApiEndpoint.Request<Endpoint>, "endpoint" | "group">
