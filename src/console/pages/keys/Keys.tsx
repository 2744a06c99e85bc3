/**
 * The key of this session, and for those who have the admin token: tenants, their keys, and the log of
 * what was done to them.
 */
import { useLocation } from "preact-iso/router"
import { type KeysView, keysAddress, keysViewOf } from "../../state/KeysView.ts"
import { adminSession, signedIn } from "../../state/Session.ts"
import { ActsLog } from "./ActsLog.tsx"
import { AdminAccess } from "./AdminAccess.tsx"
import { OwnKey } from "./OwnKey.tsx"
import { TenantKeys } from "./TenantKeys.tsx"
import { Tenants } from "./Tenants.tsx"

const titles = { keys: "Tenants and keys", log: "Log of acts" } as const

const Parts = ({ view }: { readonly view: KeysView }) => (
  <nav class="keys-parts" aria-label="Administration">
    {(["keys", "log"] as const).map((part) => (
      <a
        key={part}
        href={keysAddress({ ...view, part })}
        aria-current={view.part === part ? "page" : undefined}
      >
        {titles[part]}
      </a>
    ))}
  </nav>
)

const Administration = ({ view }: { readonly view: KeysView }) => (
  <>
    <Parts view={view} />
    {view.part === "log" ? (
      <ActsLog view={view} />
    ) : (
      <div class="keys-grid">
        <Tenants view={view} />
        {view.tenant === undefined ? (
          <p class="empty">Choose a tenant to see its keys.</p>
        ) : (
          <TenantKeys key={view.tenant} tenant={view.tenant} view={view} />
        )}
      </div>
    )}
  </>
)

export const KeysPage = () => {
  const { query } = useLocation()
  const { value } = signedIn
  const hasKey = value.is === "in" && value.session.key_id !== "admin"
  return (
    <>
      <h1>Keys and tenants</h1>
      <div class="columns">
        {hasKey ? <OwnKey /> : undefined}
        <AdminAccess />
      </div>
      {adminSession.value === null ? undefined : <Administration view={keysViewOf(query)} />}
    </>
  )
}
