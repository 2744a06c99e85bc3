/** Filters on the command line as parameters of the API. Knows the names of both, and no route. */
import { pairOf } from "./Arguments.ts"

type Values = ReadonlyArray<string>

export interface FilterOptions {
  readonly action?: Values
  readonly actor?: Values
  readonly actorType?: Values
  readonly resource?: Values
  readonly resourceType?: Values
  readonly outcome?: Values
  readonly from?: string
  readonly to?: string
  readonly search?: string
  readonly where?: string
  readonly filter?: Values
}

const PARAMETERS: Readonly<Record<Exclude<keyof FilterOptions, "filter">, string>> = {
  action: "action",
  actor: "actor_id",
  actorType: "actor_type",
  resource: "resource_id",
  resourceType: "resource_type",
  outcome: "outcome",
  from: "from",
  to: "to",
  search: "q",
  where: "where"
}

/**
 * The query of the API. A condition of `--filter` is a parameter as the API has it: `action!=x.y` and
 * `sequence_number>=5` too, since the sign is the end of the name.
 */
export const queryOf = (options: FilterOptions): Record<string, string | Values> => {
  const query: Record<string, string | Values> = {}
  for (const [name, parameter] of Object.entries(PARAMETERS)) {
    const value = options[name as keyof typeof PARAMETERS]
    if (value !== undefined) query[parameter] = value
  }
  for (const condition of options.filter ?? []) {
    const [name, value] = pairOf("--filter", condition)
    query[name] = [...[query[name] ?? []].flat(), value]
  }
  return query
}
