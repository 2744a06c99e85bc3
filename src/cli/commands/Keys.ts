/** `alk keys`: API keys of a tenant, with the admin token. A key itself is shown when it is made. */
import type { ApiKey } from "../../client/gen/Api.d.ts"
import type { Choice } from "../Contexts.ts"
import { usage } from "../Failure.ts"
import { connectAsAdmin } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { type Column, details, minute } from "../terminal/Table.ts"
import { allPages } from "./Pages.ts"

type Options = OutputOptions & Choice

interface CreateOptions extends Options {
  readonly scopes: string
  readonly label?: string
  readonly expiresIn?: number
}

const stateOf = ({ expires_at, revoked_at }: ApiKey): string => {
  if (revoked_at !== undefined) return `revoked ${minute(revoked_at)}`
  return expires_at === undefined ? "valid" : `until ${minute(expires_at)}`
}

const COLUMNS: ReadonlyArray<Column<ApiKey>> = [
  { title: "ID", text: ({ id }) => id },
  { title: "KEY", text: ({ hint }) => hint },
  { title: "SCOPES", text: ({ scopes }) => scopes.join(",") },
  { title: "LABEL", text: ({ label = "" }) => label },
  { title: "STATE", text: stateOf },
  { title: "LAST USED", text: ({ last_used_at }) => minute(last_used_at) }
]

/** `alk keys list`. */
export const listKeys = async (tenant: string, options: Options): Promise<void> => {
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    const rows = await allPages<ApiKey>(async (query) => {
      const path = { tenant }
      const { keys } = await client.request("GET /v1/admin/tenants/{tenant}/keys", { path, query })
      return keys
    })
    await output.list(COLUMNS, rows)
  })
}

const SCOPES = ["read", "write"] as const

const scopesOf = (text: string): ReadonlyArray<(typeof SCOPES)[number]> =>
  text.split(",").map((one) => {
    const scope = SCOPES.find((known) => known === one.trim())
    if (scope !== undefined) return scope
    throw usage(`--scopes: must be read, write or read,write, is ${JSON.stringify(text)}`)
  })

/** `alk keys create`. */
export const createKey = async (tenant: string, options: CreateOptions): Promise<void> => {
  const { expiresIn, label } = options
  const body = {
    scopes: scopesOf(options.scopes),
    ...(label === undefined ? {} : { label }),
    ...(expiresIn === undefined ? {} : { expires_in: expiresIn })
  }
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    const path = { tenant }
    const made = await client.request("POST /v1/admin/tenants/{tenant}/keys", { path, body })
    if (!output.isHuman) return output.document(made)
    await output.write(
      details([
        ["key", made.key],
        ["id", made.id],
        ["scopes", made.scopes.join(", ")]
      ])
    )
    output.note("it is shown only this once; keep it with: alk login")
  })
}

/** `alk keys revoke`. */
export const revokeKey = async (tenant: string, key: string, options: Options): Promise<void> => {
  const client = await connectAsAdmin(options)
  await client.request("DELETE /v1/admin/tenants/{tenant}/keys/{key}", { path: { tenant, key } })
  await withOutput(options, async (output) => output.note(`${key} is revoked`))
}
