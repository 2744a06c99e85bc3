/**
 * What `where` can say of an event: conditions on its fields, combined with AND, OR and NOT. The
 * grammar is in Parse.ts, the meaning in Matches.ts; the store has the same meaning as SQL.
 */
import { actorTypes, outcomes } from "../EventEnums.ts"

export type Comparison = ">" | ">=" | "<" | "<="

interface Field {
  /** What its values are, which says what it can be asked. */
  readonly kind: "text" | "integer" | "time"
  /** In the stored event. */
  readonly path: readonly [string] | readonly [string, string]
  /** The only values that there are; any text without it. */
  readonly values?: ReadonlyArray<string>
  /** Other names in the language. */
  readonly aliases: ReadonlyArray<string>
}

/** Fields that can be asked for, by their name in parameters of the API. */
export const whereFields = {
  id: { kind: "text", path: ["id"], aliases: [] },
  sequence_number: { kind: "integer", path: ["sequence_number"], aliases: ["sequence"] },
  timestamp: { kind: "time", path: ["timestamp"], aliases: [] },
  created_at: { kind: "time", path: ["created_at"], aliases: [] },
  actor_id: { kind: "text", path: ["actor", "id"], aliases: ["actor", "actor.id"] },
  actor_type: {
    kind: "text",
    path: ["actor", "type"],
    values: actorTypes,
    aliases: ["actor.type"]
  },
  actor_email: { kind: "text", path: ["actor", "email"], aliases: ["actor.email", "email"] },
  action: { kind: "text", path: ["action"], aliases: [] },
  resource_id: { kind: "text", path: ["resource", "id"], aliases: ["resource", "resource.id"] },
  resource_type: { kind: "text", path: ["resource", "type"], aliases: ["resource.type"] },
  resource_name: { kind: "text", path: ["resource", "name"], aliases: ["resource.name"] },
  outcome: { kind: "text", path: ["outcome"], values: outcomes, aliases: [] }
} as const satisfies Readonly<Record<string, Field>>

export type WhereField = keyof typeof whereFields

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
