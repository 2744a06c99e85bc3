/**
 * Query parameters as literals that can't break out: every value becomes hex digits inside
 * `unhex('…')`, so no character of it can mean anything to the parser. For the embedded engine
 * only: its own parameters are process-wide state, so it runs parameterised queries strictly one
 * after another, and one slow search would hold up every other read. A server gets real
 * parameters.
 */

/** `{name:Type}`, as ClickHouse writes a parameter. */
const PLACEHOLDER = /\{([A-Za-z_][A-Za-z0-9_]*):([^{}]+)\}/g

/** Values of placeholders that stand for a list or a record have a syntax of their own. */
const COMPOSITE = /^\s*(Array|Tuple|Map|Identifier)\b/

export class UnsupportedParameter extends Error {
  override readonly name = "UnsupportedParameter"
}

const literal = (name: string, type: string, value: string): string => {
  if (COMPOSITE.test(type)) {
    throw new UnsupportedParameter(`parameter ${name}: ${type} is not supported by the store`)
  }
  const bytes = `unhex('${Buffer.from(value, "utf8").toString("hex")}')`
  return type.trim() === "String" ? bytes : `CAST(${bytes} AS ${type})`
}

/** The statement with each placeholder that has a value replaced; the others are left to fail. */
export const bindLiterals = (sql: string, values: ReadonlyMap<string, string>): string =>
  values.size === 0
    ? sql
    : sql.replace(PLACEHOLDER, (placeholder, name: string, type: string) => {
        const value = values.get(name)
        return value === undefined ? placeholder : literal(name, type, value)
      })
