/**
 * What `where` can say of an event: conditions on its fields, combined with AND, OR and NOT. The
 * grammar is in Parse.ts, the meaning in Matches.ts; the store has the same meaning as SQL.
 */
import type { WhereField } from "../EventFields.ts"

export type Comparison = ">" | ">=" | "<" | "<="

/** What a condition is about. */
export type Subject = { readonly field: WhereField } | { readonly metadata: string }

/** What is asked of it; of a list in metadata it is asked of each element. */
export type Question =
  | { readonly is: string }
  | { readonly startsWith: string }
  | { readonly exists: true }
  | { readonly sign: Comparison; readonly value: string }

export type Condition = Subject & Question

/**
 * Values are texts: of a number its RFC 8785 form, of a time the canonical microsecond form. Nothing
 * but a number is more or less than a number.
 */
export type Expression =
  | Condition
  /** Text in any of the searchable texts, whatever its case. */
  | { readonly search: string }
  | { readonly not: Expression }
  | { readonly and: ReadonlyArray<Expression> }
  | { readonly or: ReadonlyArray<Expression> }

/** Characters of an expression at most. */
export const WHERE_LENGTH_MAX = 4_096
/** Conditions of an expression at most. */
export const WHERE_CONDITIONS_MAX = 64
/** Brackets and negations in one another at most. */
export const WHERE_DEPTH_MAX = 16
