/**
 * How many processes work beside the first one: what is allowed where, and how many
 * there are if nothing is said. Starts nothing.
 */

/** Each takes about 300 MB of memory, and the first process has to feed all of them. */
export const WORKERS_MAX = 64
/** Without being asked for: with about 300 MB each, more memory than this is for the user to give. */
const DEFAULT_WORKERS_MAX = 4
/** Cores for the first process, the broker and the store, which the workers depend on. */
const CORES_OF_THE_REST = 2

/**
 * Workers of an installation with everything embedded: one for every second core beyond two, each
 * with a partition at least. On two cores none: measured on a busy machine, there was no clear gain.
 * More cores were not at hand, so the rest is an estimate.
 */
export const defaultWorkers = (cores: number, partitions: number): number =>
  Math.min(
    Math.max(Math.floor((cores - CORES_OF_THE_REST) / 2), 0),
    partitions - 1,
    DEFAULT_WORKERS_MAX
  )

/** Several processes on one port, each with connections of its own, is Linux's SO_REUSEPORT. */
export const sharesPorts = (platform: string): boolean => platform === "linux"
