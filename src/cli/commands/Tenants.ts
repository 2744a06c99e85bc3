/** `alk tenants`: lists and creates tenants, with the admin token. */
import type { Tenant } from "../../client/gen/Api.d.ts"
import type { Choice } from "../Contexts.ts"
import { connectAsAdmin } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import type { Column } from "../terminal/Table.ts"
import { allPages } from "./Pages.ts"

type Options = OutputOptions & Choice

const COLUMNS: ReadonlyArray<Column<Tenant>> = [
  { title: "ID", text: ({ id }) => id },
  { title: "NAME", text: ({ name = "" }) => name },
  { title: "CREATED", text: ({ created_at }) => created_at.slice(0, 19).replace("T", " ") }
]

/** `alk tenants list`. */
export const listTenants = async (options: Options): Promise<void> => {
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    const rows = await allPages<Tenant>(async (query) => {
      const { tenants } = await client.request("GET /v1/admin/tenants", { query })
      return tenants
    })
    await output.list(COLUMNS, rows)
  })
}

/** `alk tenants create`. */
export const createTenant = async (
  id: string,
  options: Options & { readonly name?: string }
): Promise<void> => {
  const { name } = options
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    const body = { id, ...(name === undefined ? {} : { name }) }
    await output.list(COLUMNS, [await client.request("POST /v1/admin/tenants", { body })])
    output.note(`next: alk keys create ${id}`)
  })
}
