/** `alk share`: links by which others fetch report and pack of some events. */
import type { ShareLink } from "../../client/gen/Api.d.ts"
import type { Choice } from "../Contexts.ts"
import { type FilterOptions, queryOf } from "../Filters.ts"
import { connect } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { type Column, details, minute } from "../terminal/Table.ts"
import { allPages } from "./Pages.ts"

type Options = OutputOptions & Choice

interface CreateOptions extends Options, FilterOptions {
  readonly label?: string
  readonly expiresIn?: number
  readonly maxUses?: number
}

const stateOf = ({ ended, expires_at, revoked_at }: ShareLink): string => {
  if (revoked_at !== undefined) return `revoked ${minute(revoked_at)}`
  return ended === "revoked" ? "ended with its key" : `until ${minute(expires_at)}`
}

const COLUMNS: ReadonlyArray<Column<ShareLink>> = [
  { title: "ID", text: ({ id }) => id },
  { title: "LABEL", text: ({ label = "" }) => label },
  { title: "STATE", text: stateOf },
  {
    title: "USES",
    text: ({ max_uses, uses }) => (max_uses === undefined ? String(uses) : `${uses}/${max_uses}`),
    isNumber: true
  },
  { title: "LAST USED", text: ({ last_used_at }) => minute(last_used_at) },
  { title: "FILTERS", text: ({ filters }) => JSON.stringify(filters) }
]

/** `alk share create`. */
export const createLink = async (options: CreateOptions): Promise<void> => {
  const { expiresIn, from, label, maxUses, to } = options
  const { from: _, to: __, ...filters } = queryOf(options)
  const body = {
    filters,
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(label === undefined ? {} : { label }),
    ...(expiresIn === undefined ? {} : { expires_in: expiresIn }),
    ...(maxUses === undefined ? {} : { max_uses: maxUses })
  }
  const client = await connect(options)
  await withOutput(options, async (output) => {
    const made = await client.request("POST /v1/share/links", { body })
    if (!output.isHuman) return output.document(made)
    await output.write(
      details([
        ["page", made.page_url ?? ""],
        ["report", made.url],
        ["token", made.token],
        ["id", made.id],
        ["expires", made.expires_at]
      ])
    )
    output.note("the token is shown only this once")
  })
}

/** `alk share list`. */
export const listLinks = async (options: Options): Promise<void> => {
  const client = await connect(options)
  await withOutput(options, async (output) => {
    const rows = await allPages<ShareLink>(async (query) => {
      const { links } = await client.request("GET /v1/share/links", { query })
      return links
    })
    await output.list(COLUMNS, rows)
  })
}

/** `alk share revoke`. */
export const revokeLink = async (id: string, options: Options): Promise<void> => {
  const client = await connect(options)
  await client.request("DELETE /v1/share/links/{id}", { path: { id } })
  await withOutput(options, async (output) => output.note(`${id} is revoked`))
}
