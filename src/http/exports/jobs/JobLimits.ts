/** How many export jobs there may be, and how long they are kept. */

/** Jobs that one process runs at once: each may hold a verification and a printer. */
export const JOBS_AT_ONCE = 4
/** Jobs of one tenant that wait or run: fewer than a process runs, so that others get their turn. */
export const UNDER_WAY_MAX = 3
/** Jobs of one tenant that are kept. */
export const KEPT_MAX = 100
/** Days that the record of a job is listed after its file has expired, or after it has failed. */
export const RECORD_KEPT_DAYS = 7
