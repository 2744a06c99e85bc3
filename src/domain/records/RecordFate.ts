/** What becomes of a record when the segment that holds it is rewritten. */

/**
 * `keep`: byte for byte. `drop`: it goes, and its offset stays empty, as after compaction. A value:
 * the record gets that one, and keeps offset, time, key and headers.
 */
export type RecordFate = "keep" | "drop" | { readonly value: Buffer }

/** What the transaction of a record came to; `none`: it is in none. */
export type TransactionOutcome = "none" | "committed" | "aborted" | "open"
