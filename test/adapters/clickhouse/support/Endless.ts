/**
 * Statements that run until a test ends them. By this the order of answers is the test's business,
 * not that of the machine.
 */

const HEAD = "SELECT sum(sleepEachRow(0.05))"

/** A statement that ends by itself only after two minutes, so that a test that fails ends, too. */
export const endless = (name: string): string =>
  `${HEAD}, '${name}' FROM numbers(2400) SETTINGS max_block_size = 1`

/** Answers the names of those that run, a line each. It is a read like others. */
export const RUNNING =
  "SELECT extract(query, ', \\'(\\w+)\\'') FROM system.processes"
  + ` WHERE startsWith(query, '${HEAD}') ORDER BY query FORMAT TSV`

const killing = (name: string, more: string): string =>
  `KILL QUERY WHERE startsWith(query, '${HEAD}') AND query LIKE '%, \\'${name}\\' %' ${more}`

/** Ends one of them: it fails with QUERY_WAS_CANCELLED. */
export const killed = (name: string): string => killing(name, "ASYNC FORMAT TSV")

/** Answers a line for one that runs, also while as many reads as there may be are running. */
export const found = (name: string): string => killing(name, "TEST FORMAT TSV")
