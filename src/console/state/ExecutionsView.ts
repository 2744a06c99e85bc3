/** Which executions are listed, as the address says it. Pure. */

export const statuses = ["RUNNING", "COMPLETED", "FAILED", "CANCELLED"] as const
export type Status = (typeof statuses)[number]

export const orders = {
  started_at: "Newest first",
  duration: "Slowest first",
  errors: "Most errors first",
  tokens: "Most tokens first",
  cost: "Most costly first"
} as const
export type Order = keyof typeof orders

/** Texts that executions are filtered by, as the API names them. */
export const textFilters = ["agent_id", "name", "model", "session_id", "user_id"] as const
export type TextFilter = (typeof textFilters)[number]

export interface ExecutionsView {
  readonly texts: Readonly<Partial<Record<TextFilter, string>>>
  readonly status: ReadonlyArray<Status>
  readonly hasError: boolean
  readonly from: string | undefined
  readonly to: string | undefined
  readonly sort: Order
  /** From 1. */
  readonly page: number
}

export const PAGE_SIZE = 50

const given = (text: string | undefined): string | undefined => (text === "" ? undefined : text)

export const executionsViewOf = (query: Readonly<Record<string, string>>): ExecutionsView => {
  const listed = (query["status"] ?? "").split(",")
  const page = Number(query["page"])
  return {
    texts: Object.fromEntries(
      textFilters.flatMap((name) => {
        const text = given(query[name])
        return text === undefined ? [] : [[name, text] as const]
      })
    ),
    status: statuses.filter((status) => listed.includes(status)),
    hasError: query["has_error"] === "true",
    from: given(query["from"]),
    to: given(query["to"]),
    sort: Object.hasOwn(orders, query["sort"] ?? "") ? (query["sort"] as Order) : "started_at",
    page: Number.isSafeInteger(page) && page > 0 ? page : 1
  }
}

/** The parameters that the address and the API have in common. */
const parametersOf = (view: ExecutionsView): URLSearchParams => {
  const parameters = new URLSearchParams()
  for (const name of textFilters) {
    const text = view.texts[name]
    if (text !== undefined) parameters.set(name, text)
  }
  if (view.status.length > 0) parameters.set("status", view.status.join(","))
  if (view.hasError) parameters.set("has_error", "true")
  if (view.from !== undefined) parameters.set("from", view.from)
  if (view.to !== undefined) parameters.set("to", view.to)
  if (view.sort !== "started_at") parameters.set("sort", view.sort)
  if (view.page > 1) parameters.set("page", String(view.page))
  return parameters
}

export const executionsAddress = (view: ExecutionsView): string => {
  const query = parametersOf(view).toString()
  return query === "" ? "/executions" : `/executions?${query}`
}

export const executionsPath = (view: ExecutionsView): string => {
  const parameters = parametersOf(view)
  // What is asked for since some time ago ends now: executions may be dated in the future.
  if (view.from?.startsWith("-") && view.to === undefined) parameters.set("to", "now")
  parameters.set("page_size", String(PAGE_SIZE))
  return `/api/v1/executions?${parameters}`
}

export const isNarrowed = ({ from, hasError, status, texts, to }: ExecutionsView): boolean =>
  Object.keys(texts).length > 0
  || status.length > 0
  || hasError
  || from !== undefined
  || to !== undefined
