/** Which functions take the name of a time zone, or a type that has one, and at which argument. */

/** What an argument may be: a time, a text with one, a number, a unit, a format, an interval, a text. */
const VALUES = [
  "now()",
  "toDateTime64('2020-01-01', 3)",
  "toDate('2020-01-01')",
  "'2020-01-01 00:00:00'",
  "1",
  "'day'",
  "'%Y'",
  "toIntervalDay(1)",
  "'{\"a\":1}'"
]
/** Of makeDateTime64, the last one is the ninth. */
const ARGUMENTS_MAX = 9
/** Before a place behind these, all arguments but the first one are alike. */
const VARIED_MAX = 2

/** No zone has this name, and no type can be made with it. */
export const NO_ZONE = "No/Such"
const PROBES = {
  zone: `'${NO_ZONE}'`,
  type: `'DateTime(\\'${NO_ZONE}\\')'`
} as const
const TAKEN = new RegExp(`time ?zone ${NO_ZONE}`, "i")
const WRONG_COUNT = /^Code: (42|35|34)\b/

const alike = (count: number, one: string): ReadonlyArray<string> => Array(count).fill(one)

/** Arguments before a place. */
const before = (at: number): ReadonlyArray<ReadonlyArray<string>> => {
  if (at === 0) return [[]]
  if (at <= VARIED_MAX) {
    return before(at - 1).flatMap((first) => VALUES.map((last) => [...first, last]))
  }
  return VALUES.flatMap((first) => ["now()", "1"].map((rest) => [first, ...alike(at - 1, rest)]))
}

/** Arguments behind a place at most. */
const BEHIND_MAX = 1

export interface Taken {
  readonly kind: keyof typeof PROBES
  readonly at: number
  readonly count: number
  readonly sql: string
}

/** Where a function takes a zone or a type, by what the engine says of a statement that fails. */
export const placesOf = async (
  name: string,
  failure: (sql: string) => Promise<string>
): Promise<ReadonlyArray<Taken>> => {
  const taken: Array<Taken> = []
  const wrongCounts = new Set<number>()
  const isCalledWith = async (count: number): Promise<boolean> => {
    for (const first of ["1", "now()", "'2020-01-01 00:00:00'"]) {
      const all = [first, ...alike(count - 1, PROBES.zone)].join(", ")
      if (!WRONG_COUNT.test(await failure(`SELECT ${name}(${all})`))) return true
    }
    return false
  }
  for (let count = 1; count <= ARGUMENTS_MAX; count += 1) {
    if (!(await isCalledWith(count))) wrongCounts.add(count)
  }
  const find = async (kind: Taken["kind"], at: number, count: number): Promise<void> => {
    for (const first of before(at)) {
      const all = [...first, PROBES[kind], ...alike(count - at - 1, "now()")]
      const sql = `SELECT ${name}(${all.join(", ")})`
      if (TAKEN.test(await failure(sql))) {
        taken.push({ kind, at, count, sql })
        return
      }
    }
  }
  for (let count = 1; count <= ARGUMENTS_MAX; count += 1) {
    if (wrongCounts.has(count)) continue
    for (let at = Math.max(0, count - 1 - BEHIND_MAX); at < count; at += 1) {
      for (const kind of ["zone", "type"] as const) await find(kind, at, count)
    }
  }
  return taken
}
