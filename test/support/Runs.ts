/**
 * How often a property is tried: a tenth of its runs in `npm test`, all of them in `npm run test:all`,
 * which sets TEST_RUNS to 1. A larger share tries more than that.
 */
const share = Number(process.env["TEST_RUNS"] ?? 0.1)

/** True if nothing is left out of what is tried. */
export const isWhole = share >= 1

/** The share of so many runs, at least one. */
export const runs = (all: number): number => Math.max(1, Math.ceil(all * share))
