/**
 * Parameters that name fields of events: columns of a list, what is counted. Their names are those of
 * conditions, and what is refused lists all that there are.
 */
import { Result } from "effect"
import { isMetadataName } from "../../domain/events/EventFields.ts"
import {
  METADATA_PATH_SEGMENTS_MAX,
  METADATA_PREFIX,
  metadataPathSegments
} from "../../domain/events/MetadataPath.ts"
import type { Parameter } from "../messages/QueryParameters.ts"
import { whatWasMeant } from "../messages/UnknownParameter.ts"

interface FieldsOptions {
  readonly description: string
  /** What is said behind the names. */
  readonly more?: string
  readonly default?: string
  readonly example: string
  readonly most: number
}

/** True for a path that has more keys than one may have. */
export const isTooDeep = (path: string): boolean =>
  metadataPathSegments(path).length > METADATA_PATH_SEGMENTS_MAX

/** Some of the names, and paths of metadata, with commas in between. */
export const fieldsParameter = <Name extends string>(
  names: ReadonlyArray<Name>,
  { default: byDefault, description, example, more = "", most }: FieldsOptions
): Parameter<ReadonlyArray<Name | `metadata.${string}`>> => {
  const isKnown = (name: string): name is Name | `metadata.${string}` =>
    (names as ReadonlyArray<string>).includes(name) || isMetadataName(name)
  return {
    description:
      `${description}, with commas in between: ${names.join(", ")}, or \`${METADATA_PREFIX}\` and a `
      + `path; at most ${most}.${more}`,
    schema: { type: "string", minLength: 1, ...(byDefault && { default: byDefault }) },
    example,
    parse: (text) => {
      const asked = text.split(",")
      const unknown = asked.find((name) => !isKnown(name))
      if (unknown !== undefined) {
        const known = [...names, `${METADATA_PREFIX}<path>`]
        return Result.fail(`knows no ${JSON.stringify(unknown)}; ${whatWasMeant(unknown, known)}`)
      }
      if (new Set(asked).size < asked.length) return Result.fail("names a field twice")
      if (asked.length > most) return Result.fail(`names more than ${most} fields`)
      const known = asked.filter(isKnown)
      return known.some(
        (name) => isMetadataName(name) && isTooDeep(name.slice(METADATA_PREFIX.length))
      )
        ? Result.fail(`has a path of more than ${METADATA_PATH_SEGMENTS_MAX} segments`)
        : Result.succeed(known)
    }
  }
}
