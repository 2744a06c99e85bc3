/**
 * The actions of a program as types: an action that is misspelt, or whose metadata has another shape,
 * does not compile. At run time it says only whether the names are ones that the service takes.
 */
import type { EventInput, EventMetadata } from "./EventInput.ts"

interface TypesByName {
  readonly string: string
  readonly number: number
  readonly boolean: boolean
  readonly object: Readonly<Record<string, unknown>>
  readonly array: ReadonlyArray<unknown>
}

type TypeName = keyof TypesByName

/** A member of metadata; with `?` at its end it may be left out. */
export type MemberType = TypeName | `${TypeName}?`

/** What is known of an action. */
export interface ActionShape {
  /** For people who read the catalogue. */
  readonly description?: string
  /** `resource.type` of its events; any if missing. */
  readonly resource?: string
  /** Members of the metadata and their types; anything if missing. */
  readonly metadata?: Readonly<Record<string, MemberType>>
}

/** Actions by name, as `catalogue` gives them. */
export type Actions = Readonly<Record<string, ActionShape>>

type TypeOf<T> = T extends `${infer Name extends TypeName}?`
  ? TypesByName[Name]
  : T extends TypeName
    ? TypesByName[T]
    : never

type OptionalNames<M> = {
  [Name in keyof M]: M[Name] extends `${TypeName}?` ? Name : never
}[keyof M]

type MetadataOf<M> = {
  readonly [Name in Exclude<keyof M, OptionalNames<M>>]: TypeOf<M[Name]>
} & {
  readonly [Name in OptionalNames<M>]?: TypeOf<M[Name]>
}

/** Metadata has to be given where one of its members has to. */
type MetadataMember<Shape> = Shape extends { readonly metadata: infer M }
  ? Exclude<keyof M, OptionalNames<M>> extends never
    ? { readonly metadata?: MetadataOf<M> }
    : { readonly metadata: MetadataOf<M> }
  : { readonly metadata?: EventMetadata | null }

type ResourceMember<Shape> = Shape extends { readonly resource: infer Type }
  ? { readonly resource: EventInput["resource"] & { readonly type: Type } }
  : unknown

/** The events that a catalogue allows. */
export type EventOf<A extends Actions> = {
  readonly [Name in keyof A & string]: Omit<EventInput<Name>, "metadata"> &
    MetadataMember<A[Name]> &
    ResourceMember<A[Name]>
}[keyof A & string]

/** Characters of an action at most. */
const ACTION_LENGTH_MAX = 128
const ACTION = /^(?!alk\.)[\w-]+(?:\.[\w-]+)+$/

/**
 * A catalogue of actions, for the option `actions` of `createClient`:
 *
 *     catalogue({
 *       "user.login": { metadata: { ip: "string", attempt: "number?" } },
 *       "document.read": { resource: "document" }
 *     })
 *
 * Throws TypeError for a name that the service would refuse.
 */
export const catalogue = <const A extends Actions>(actions: A): A => {
  for (const name of Object.keys(actions)) {
    if (ACTION.test(name) && name.length <= ACTION_LENGTH_MAX) continue
    throw new TypeError(
      `actions: ${JSON.stringify(name)} is no name of an action; use two or more segments of ASCII `
        + "letters, digits, _ and - with dots between them, such as user.login, and not alk.…"
    )
  }
  return actions
}
