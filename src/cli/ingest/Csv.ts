/** Records of CSV (RFC 4180) as events: columns by their names, a mapping, constants. */
import { usage } from "../Failure.ts"

/** Fields of an event, by the names that the list of events has for them. */
const FIELDS: Readonly<Record<string, readonly [string] | readonly [string, string]>> = {
  id: ["id"],
  timestamp: ["timestamp"],
  action: ["action"],
  outcome: ["outcome"],
  actor_id: ["actor", "id"],
  actor_type: ["actor", "type"],
  actor_email: ["actor", "email"],
  resource_id: ["resource", "id"],
  resource_type: ["resource", "type"],
  resource_name: ["resource", "name"]
}
const METADATA = "metadata."

/** The cells of a record. Throws Error if a quote is not closed. */
export const cellsOf = (record: string): ReadonlyArray<string> => {
  const cells: Array<string> = []
  let at = 0
  while (at <= record.length) {
    if (record[at] !== '"') {
      const comma = record.indexOf(",", at)
      const end = comma < 0 ? record.length : comma
      cells.push(record.slice(at, end))
      at = end + 1
      continue
    }
    let cell = ""
    for (at += 1; ; at += 2) {
      const quote = record.indexOf('"', at)
      if (quote < 0) throw new Error("a quote is not closed")
      cell += record.slice(at, quote)
      at = quote
      if (record[at + 1] !== '"') break
      cell += '"'
    }
    cells.push(cell)
    at += 1
    if (at < record.length && record[at] !== ",") throw new Error("text after a closing quote")
    at += 1
  }
  return cells
}

/** Column by field, and value by field, as options give them. */
export interface Mapping {
  readonly columns: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, string>>
}

const checkField = (option: string, field: string): void => {
  if (FIELDS[field] !== undefined) return
  if (field.startsWith(METADATA) && field.length > METADATA.length) return
  const names = Object.keys(FIELDS).join(", ")
  throw usage(`${option}: ${field} is no field; there are ${names}, and metadata.NAME`)
}

const place = (event: Record<string, unknown>, field: string, value: string): void => {
  const path = FIELDS[field] ?? ["metadata", field.slice(METADATA.length)]
  const [outer, inner] = path
  if (inner === undefined) event[outer] = value
  else event[outer] = { ...(event[outer] as object | undefined), [inner]: value }
}

/**
 * What makes events of records: a column of a field's name is that field, others are members of
 * metadata, empty cells are left out. Throws CommandFailure for what the header does not have.
 */
export const eventsOfCsv = (
  header: ReadonlyArray<string>,
  { columns, values }: Mapping
): ((record: string) => Readonly<Record<string, unknown>>) => {
  for (const field of Object.keys(columns)) checkField("--map", field)
  for (const field of Object.keys(values)) checkField("--set", field)
  const fieldOfColumn = new Map<string, string>()
  for (const [field, column] of Object.entries(columns)) {
    if (!header.includes(column)) {
      throw usage(`--map: there is no column ${column}; there are ${header.join(", ")}`)
    }
    fieldOfColumn.set(column, field)
  }
  const fields = header.map((name) => {
    const isField = FIELDS[name] !== undefined || name.startsWith(METADATA)
    return fieldOfColumn.get(name) ?? (isField ? name : METADATA + name)
  })
  return (record) => {
    const cells = cellsOf(record)
    if (cells.length !== fields.length) {
      throw new Error(`has ${cells.length} cells where the header has ${fields.length}`)
    }
    const event: Record<string, unknown> = {}
    for (const [field, value] of Object.entries(values)) place(event, field, value)
    for (const [at, field] of fields.entries()) {
      if (cells[at] !== "") place(event, field, cells[at]!)
    }
    return event
  }
}
