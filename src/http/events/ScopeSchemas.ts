/**
 * The schemas of what a body covers: bounds of time and conditions, by the names of the event list's
 * parameters. Knows neither share links nor exports.
 */
import { Schema } from "effect"
import { optionalInput } from "../contract/Bodies.ts"
import { Timestamp } from "../contract/ContractSchemas.ts"
import type { DescribedParameter } from "../messages/QueryParameters.ts"
import { conditionParameters, filterParameters } from "./EventParameters.ts"

/** A parameter of the event list as a member: integers as text too, and `null` for an absent one. */
const memberOf = (schema: Readonly<Record<string, unknown>>) => ({
  ...schema,
  type: schema["type"] === "integer" ? ["integer", "string", "null"] : [schema["type"], "null"],
  ...(schema["type"] === "integer" ? { pattern: "^[0-9]{1,15}$" } : {}),
  ...(Array.isArray(schema["enum"]) ? { enum: [...schema["enum"], null] } : {})
})

/** A condition as a member: the text of a parameter, or those of one that is repeated. */
const conditionMember = (value: object) => ({
  anyOf: [value, { type: "array", items: value }, { type: "null" }]
})

const { from: _from, to: _to, ...parameters } = filterParameters

/** The parameters by name, nothing else, and no number where text is due. */
const Filters = Schema.Record(Schema.String, Schema.Unknown).check(
  Schema.makeFilter(() => true, {
    toJsonSchema: () => ({
      properties: {
        ...Object.fromEntries(
          Object.entries(conditionParameters).map(([name, { description, schema }]) => [
            name,
            { ...conditionMember(schema["items"] as object), description }
          ])
        ),
        ...Object.fromEntries(
          Object.entries(parameters).map(([name, { description, schema }]) => [
            name,
            { ...memberOf(schema), description }
          ])
        )
      },
      patternProperties: {
        "^metadata\\.|[!<>]=$": {
          ...conditionMember({ type: ["string", "number"] }),
          description:
            "A condition on metadata, or one with the sign `!=`, `>=` or `<=` at the end of its "
            + "name; a number after `>=` and `<=` only."
        }
      },
      additionalProperties: false
    })
  })
)

const boundOf = ({ description, schema }: DescribedParameter) =>
  Schema.String.check(Schema.isPattern(new RegExp(String(schema["pattern"]), "u"))).annotate({
    description
  })

/** Members of a body that say what it covers. */
export const scopeInput = {
  from: optionalInput(boundOf(filterParameters.from)),
  to: optionalInput(boundOf(filterParameters.to)),
  filters: optionalInput(Filters).annotateKey({
    description:
      "Conditions by the names of the event list's parameters, `metadata.<path>` included; not "
      + "from and to. A name may end with `!=`, `>=` or `<=`. Several values are an array, or have "
      + "commas between them."
  })
}

/** Members of an answer that show it; `end` says when an open end is the end. */
export const scopeFields = (end: string) => ({
  from: Schema.NullOr(Timestamp).annotate({ description: "null: from the start." }),
  to: Schema.NullOr(Timestamp).annotate({ description: `null: to the end, ${end}.` }),
  filters: Schema.Record(Schema.String, Schema.String).annotate({
    description: "The conditions beside the bounds, as parameters of the event list."
  })
})
