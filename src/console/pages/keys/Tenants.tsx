/** Tenants to choose from, and the form that makes one. */
import type { TargetedSubmitEvent } from "preact"
import { useLocation } from "preact-iso/router"
import type { Tenant, TenantList } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { call } from "../../api/Client.ts"
import { Answered } from "../../parts/Answered.tsx"
import { Card, Empty, Failure } from "../../parts/Basics.tsx"
import { type KeysView, keysAddress } from "../../state/KeysView.ts"
import { useAct } from "./Act.ts"
import { Field, otherFailure } from "./Field.tsx"
import { PageLinks } from "./PageLinks.tsx"

const PAGE_SIZE = 20
const fields = ["id", "name"]

const NewTenant = ({ onMade, view }: { readonly view: KeysView; readonly onMade: () => void }) => {
  const { route } = useLocation()
  const { failure, isBusy, run } = useAct()
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const form = event.currentTarget
    const given = new FormData(form)
    const id = String(given.get("id") ?? "").trim()
    const name = String(given.get("name") ?? "").trim()
    void run(async () => {
      const body = { id, name: name === "" ? null : name }
      await call<Tenant>("/v1/admin/tenants", { method: "POST", body, as: "admin" })
      form.reset()
      onMade()
      route(keysAddress({ ...view, tenant: id, keysPage: 1 }))
    })
  }
  const rest = otherFailure(failure.value, fields)
  return (
    <details class="keys-new">
      <summary>New tenant</summary>
      <form class="keys-form" onSubmit={submit}>
        <Field
          label="Id"
          name="id"
          failure={failure.value}
          required
          maxLength={63}
          placeholder="initech"
          hint="Lower-case letters, digits, - and _. It can't be changed later."
        />
        <Field
          label="Name"
          name="name"
          failure={failure.value}
          maxLength={256}
          placeholder="Initech Inc."
          hint="For people; may be left out."
        />
        <button type="submit" class="primary" disabled={isBusy.value}>
          {isBusy.value ? "Creating …" : "Create the tenant"}
        </button>
      </form>
      {rest === undefined ? undefined : <Failure failure={rest} />}
    </details>
  )
}

const List = ({
  tenants,
  view
}: {
  readonly tenants: ReadonlyArray<Tenant>
  readonly view: KeysView
}) => (
  <ul class="keys-tenants">
    {tenants.map(({ id, name }) => (
      <li key={id}>
        <a
          href={keysAddress({ ...view, tenant: id, keysPage: 1 })}
          aria-current={id === view.tenant ? "true" : undefined}
        >
          <strong>{id}</strong> {name === undefined ? undefined : <span class="faint">{name}</span>}
        </a>
      </li>
    ))}
  </ul>
)

export const Tenants = ({ view }: { readonly view: KeysView }) => {
  const path = `/v1/admin/tenants?page=${view.tenantsPage}&page_size=${PAGE_SIZE}`
  const list = useAnswer<TenantList>(path, undefined, "admin")
  return (
    <Card title="Tenants">
      <Answered answer={list} what="the tenants">
        {({ tenants, total }) => (
          <>
            {tenants.length === 0 ? (
              <Empty title={total === 0 ? "None yet" : "None on this page"}>
                <p>A tenant has events, keys and a chain of its own.</p>
              </Empty>
            ) : (
              <List tenants={tenants} view={view} />
            )}
            <PageLinks
              label="Pages of tenants"
              noun="tenant"
              page={view.tenantsPage}
              size={PAGE_SIZE}
              total={total}
              to={(tenantsPage) => keysAddress({ ...view, tenantsPage })}
            />
          </>
        )}
      </Answered>
      <NewTenant view={view} onMade={list.reload} />
    </Card>
  )
}
