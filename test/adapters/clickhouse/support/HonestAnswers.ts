/**
 * Answers to the statements of HonestStatements.ts in a form that can be compared, and the file of
 * what they were. A change of that file is a change that clients see; with
 * `TEST_HONEST_ANSWERS=write` the test of the contract writes it.
 */
import { readFileSync, writeFileSync } from "node:fs"

const FILE = new URL("./HonestAnswers.json", import.meta.url)

export interface HonestAnswer {
  readonly meta: ReadonlyArray<{ readonly name: string; readonly type: string }>
  /** Values in the order of `meta`. */
  readonly data: ReadonlyArray<ReadonlyArray<unknown>>
  readonly totals?: ReadonlyArray<unknown>
  readonly rows: number
}

type Row = Readonly<Record<string, unknown>>

/** The format JSON of ClickHouse. */
interface Answered {
  readonly meta: HonestAnswer["meta"]
  readonly data: ReadonlyArray<Row>
  readonly totals?: Row
  readonly rows: number
}

/** Numbers that a double can't hold, and -0, are kept as they are written. */
const exact = (_key: string, value: unknown, { source }: { readonly source: string }): unknown =>
  typeof value === "number"
  && (Object.is(value, -0) || (Number.isInteger(value) && !Number.isSafeInteger(value)))
    ? source
    : value

/** Without a number that depends on where in the statement a subquery stands. */
const nameOf = (name: string): string => name.replaceAll(/_subquery_\d+/g, "_subquery")

const inOrder = (rows: HonestAnswer["data"]): HonestAnswer["data"] =>
  rows
    .map((row) => ({ row, text: JSON.stringify(row) }))
    .sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0))
    .map(({ row }) => row)

/** What was answered to `sql`; of a statement that asks for no order, in one of its own. */
export const honestAnswer = (sql: string, json: string): HonestAnswer => {
  const reviver = exact as (key: string, value: unknown) => unknown
  const { data, meta, rows, totals } = JSON.parse(json, reviver) as Answered
  const valuesOf = (row: Row) => meta.map(({ name }) => row[name])
  const values = data.map(valuesOf)
  return {
    meta: meta.map(({ name, type }) => ({ name: nameOf(name), type })),
    data: /order\s+by/i.test(sql) ? values : inOrder(values),
    ...(totals === undefined ? {} : { totals: valuesOf(totals) }),
    rows
  }
}

export const readHonestAnswers = (): ReadonlyArray<HonestAnswer> =>
  JSON.parse(readFileSync(FILE, "utf8"))

export const writesHonestAnswers = process.env["TEST_HONEST_ANSWERS"] === "write"

export const writeHonestAnswers = (answers: ReadonlyArray<unknown>): void =>
  writeFileSync(FILE, `[\n${answers.map((answer) => JSON.stringify(answer)).join(",\n")}\n]\n`)
