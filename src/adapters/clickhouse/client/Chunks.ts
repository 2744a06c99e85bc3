/** Rows and bytes of one chunk of a scan at most (one row may be larger). */
export const CHUNK_ROWS_MAX = 5_000
export const CHUNK_BYTES_MAX = 8 * 1_048_576
