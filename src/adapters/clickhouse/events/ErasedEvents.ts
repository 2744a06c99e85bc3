/** Marks of erased events, for conditions on details. */
import { IS_ERASED } from "./EventText.ts"

/** Reads the marks of erased events, which is apart from what reads by an index of texts. */
export interface ErasedEvents {
  /** Condition for the rows that are not marked, or that are left by another condition. */
  readonly unless: (left?: string) => string
}

/**
 * A marked row still holds its details in the columns that are searched, until it is purged. ClickHouse
 * 26.7 gives wrong answers where one read takes its rows from an index of texts and a column from a
 * patch, so the marks are read for themselves.
 */
export const erasedEventsOf = (table: string, tenant: string): ErasedEvents => ({
  unless: (left) =>
    `sequence_number NOT IN (SELECT sequence_number FROM ${table} WHERE ${tenant} AND ${IS_ERASED}`
    + `${left === undefined ? "" : ` AND NOT (${left})`})`
})
