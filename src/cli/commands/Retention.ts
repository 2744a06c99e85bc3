/** `alk tenants retention|hold|release|delete`, with the admin token. */
import type { TenantRetention, Tombstone } from "../../client/gen/Api.d.ts"
import type { Choice } from "../Contexts.ts"
import { connectAsAdmin } from "../Session.ts"
import { type Output, type OutputOptions, withOutput } from "../terminal/Output.ts"
import { details } from "../terminal/Table.ts"

type Options = OutputOptions & Choice
type Reasoned = Options & { readonly reason?: string }

const reasonOf = ({ reason }: Reasoned) => (reason === undefined ? {} : { reason })

const retentionText = ({ days, deletion, hold, pruned, tenant_id }: TenantRetention): string =>
  details([
    ["tenant", tenant_id],
    ["kept for", days === null ? "ever" : `${days} days`],
    ["hold", hold === null ? "" : `since ${hold.since} by ${hold.by}: ${hold.reason}`],
    [
      "deletion",
      deletion === null ? "" : `asked for at ${deletion.requested_at} by ${deletion.by}`
    ],
    ...pruned.map(
      ({ chain, pruned_at, removed_at, root_hash, up_to_sequence }): [string, string] => [
        chain,
        `up to ${up_to_sequence} ${removed_at === null ? "being removed" : "removed"} since ${pruned_at}`
          + `, root ${root_hash}`
      ]
    )
  ])

const show = (output: Output, state: TenantRetention) =>
  output.isHuman ? output.write(retentionText(state)) : output.document(state)

const endText = (end: Tombstone["events"]): string =>
  end === undefined ? "" : `${end.size}, the last with hash ${end.head_hash}, root ${end.root_hash}`

const showTombstone = (output: Output, tombstone: Tombstone) =>
  output.isHuman
    ? output.write(
        details([
          ["tenant", tombstone.tenant_id],
          ["deleted", `${tombstone.deleted_at} by ${tombstone.deleted_by}`],
          ["events", endText(tombstone.events)],
          ["facts", endText(tombstone.traces)],
          ["removed", tombstone.removed_at ?? "soon"]
        ])
      )
    : output.document(tombstone)

/** `alk tenants retention`. */
export const retention = async (
  tenant: string,
  options: Options & { readonly days?: number; readonly forEver?: boolean }
): Promise<void> => {
  const { days, forEver = false } = options
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    const path = { tenant }
    const state =
      days === undefined && !forEver
        ? await client.request("GET /v1/admin/tenants/{tenant}/retention", { path })
        : await client.request("PUT /v1/admin/tenants/{tenant}/retention", {
            path,
            body: { days: days ?? null }
          })
    await show(output, state)
  })
}

/** `alk tenants hold`. */
export const hold = async (
  tenant: string,
  options: Options & { readonly reason: string }
): Promise<void> => {
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    const body = { reason: options.reason }
    const route = "POST /v1/admin/tenants/{tenant}/hold"
    await show(output, await client.request(route, { path: { tenant }, body }))
  })
}

/** `alk tenants release`. */
export const release = async (tenant: string, options: Reasoned): Promise<void> => {
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    const route = "POST /v1/admin/tenants/{tenant}/release"
    await show(output, await client.request(route, { path: { tenant }, body: reasonOf(options) }))
  })
}

/** `alk tenants delete`. */
export const deleteTenant = async (
  tenant: string,
  options: Reasoned & { readonly confirm?: string; readonly cancel?: boolean }
): Promise<void> => {
  const client = await connectAsAdmin(options)
  await withOutput(options, async (output) => {
    const path = { tenant }
    if (options.cancel === true) {
      await client.request("DELETE /v1/admin/tenants/{tenant}/deletion", { path })
      output.note(`tenant ${tenant} stays`)
    } else if (options.confirm === undefined) {
      const route = "POST /v1/admin/tenants/{tenant}/deletion"
      await show(output, await client.request(route, { path, body: reasonOf(options) }))
      output.note(`nothing is removed yet; next: alk tenants delete ${tenant} --confirm ${tenant}`)
    } else {
      const route = "POST /v1/admin/tenants/{tenant}/deletion/confirm"
      const body = { tenant: options.confirm }
      await showTombstone(output, await client.request(route, { path, body }))
    }
  })
}
