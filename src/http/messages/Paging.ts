/** The sizes of pages, the same for every list. */

/** Events of a page, unless asked otherwise and at most. */
export const PAGE_SIZE_DEFAULT = 50

export const PAGE_SIZE_MAX = 1_000

/** The page that is shown unless asked otherwise. */
export const PAGE_DEFAULT = 1

/** `page` times `page_size` at most: beyond it only sequence numbers lead on. */
export const PAGED_EVENTS_MAX = 10_000_000
