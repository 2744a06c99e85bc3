/** What a share link covers, in words. Pure. */

/** A time to the second, with its zone. */
export const timeWords = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`

/** The period of a scope. */
export const periodWords = (from: string | null, to: string | null): string => {
  if (from === null && to === null) return "everything, from the first event to the newest"
  if (from === null) return `from the first event to ${timeWords(to!)}`
  return `${timeWords(from)} to ${to === null ? "the newest event" : timeWords(to)}`
}

const names: Readonly<Record<string, string>> = {
  id: "event id",
  actor_id: "actor",
  actor_type: "type of the actor",
  action: "action",
  resource_id: "resource",
  resource_type: "type of the resource",
  outcome: "outcome"
}

/** One condition; `name` is a parameter of the event list. */
const conditionWords = (name: string, value: string): string => {
  if (name === "where") return `the query ${value}`
  if (name === "q") return `the text “${value}” in them`
  if (name === "from_sequence") return `sequence number ${value} or higher`
  if (name === "to_sequence") return `sequence number ${value} or lower`
  if (name === "action" && value.endsWith("*"))
    return `an action that begins with ${value.slice(0, -1)}`
  if (name.startsWith("metadata.")) return `${name} = ${value}`
  return `${names[name] ?? name} ${value}`
}

/** The conditions of a scope beside its period, one each; none for every event. */
export const filterWords = (filters: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Object.entries(filters).map(([name, value]) => conditionWords(name, value))
