/** What `alk doctor` has found, as lines. */

export interface Finding {
  /** Of what. */
  readonly name: string
  readonly state: "ok" | "warning" | "missing"
  /** What was found, and what to do about it. */
  readonly text: string
}

const NAME_WIDTH = 11
const SIGNS = { ok: "ok     ", warning: "warning", missing: "MISSING" } as const

/** A line each. */
export const linesOfFindings = (findings: ReadonlyArray<Finding>): string =>
  findings
    .map(({ name, state, text }) => `${SIGNS[state]}  ${name.padEnd(NAME_WIDTH)} ${text}\n`)
    .join("")

export const DOCTOR_HELP = `alk doctor

Checks what the service needs on this machine, by its configuration: Java, Chromium, port, disk, brokers,
ClickHouse; and of the service that ALK_URL or alk login names, whether it answers, its clock, and what
the key may do. Starts nothing. Exit code 1 if something is missing.
`
