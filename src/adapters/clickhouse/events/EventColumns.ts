/**
 * What of a row is no part of the event's JSON, and follows from it: verification computes it again and
 * names what differs.
 */
import type { disagreementOf } from "../client/JsonColumns.ts"
import { eventRowColumns } from "./EventRows.ts"
import { IS_ERASED, NO_SALT } from "./EventText.ts"
import { SEARCH_HOLDS } from "./SearchText.ts"

/** A record whose details the topic has forgotten makes a row of version 1; erasing changes none. */
export const VERSION_HOLDS =
  `(version = 0 OR (version = 1 AND ${IS_ERASED} AND actor_email = '' AND resource_name = ''`
  + ` AND metadata = '' AND details_salt = ${NO_SALT}))`

/** What a row is made of, but for its place in the topic. */
export const eventColumns: ReadonlyArray<string> = [...eventRowColumns, "version", "search"]

/** For verification: the names of the columns that differ. */
export const disagreement: ReturnType<typeof disagreementOf> = {
  with: "",
  names: `arrayConcat(if(${SEARCH_HOLDS}, [], ['search']), if(${VERSION_HOLDS}, [], ['version']))`
}
