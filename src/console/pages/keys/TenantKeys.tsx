/** The keys of one tenant: how each stands, when it was used, and how it is revoked. */
import { useSignal } from "@preact/signals"
import type { ApiKey, ApiKeyList } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Answered } from "../../parts/Answered.tsx"
import { Ago, Card, Empty, Scrolls, State, Time } from "../../parts/Basics.tsx"
import type { Tone } from "../../parts/Mark.tsx"
import { type KeyState, type KeysView, keyStateOf, keysAddress } from "../../state/KeysView.ts"
import { NewKey } from "./NewKey.tsx"
import { PageLinks } from "./PageLinks.tsx"
import { RevokeKey } from "./RevokeKey.tsx"

const PAGE_SIZE = 50

const tones: Readonly<Record<KeyState, Tone>> = {
  valid: "good",
  "expires soon": "warn",
  expired: "plain",
  revoked: "plain"
}

/** A use is written once an hour: nearer than that nothing is known. */
const LastUse = ({ at }: { readonly at: string | undefined }) => {
  if (at === undefined) return <span class="faint">not known</span>
  const isRecent = Date.now() - Date.parse(at) < 3_600_000
  return isRecent ? (
    <time dateTime={at} title={`a use at ${at}; the last one may be later`}>
      within the last hour
    </time>
  ) : (
    <Ago at={at} />
  )
}

const Row = ({
  apiKey,
  revoke
}: {
  readonly apiKey: ApiKey
  readonly revoke: (key: ApiKey) => void
}) => {
  const { created_at, expires_at, hint, id, label, last_used_at, revoked_at, scopes } = apiKey
  const state = keyStateOf(apiKey, Date.now())
  return (
    <tr>
      <td>
        <span class="keys-label" title={id}>
          {label ?? <span class="faint">no label</span>}
        </span>
        <code>{hint}</code>
      </td>
      <td>{scopes.join(", ")}</td>
      <td>
        <State tone={tones[state]}>{state}</State>
      </td>
      <td>
        <LastUse at={last_used_at} />
      </td>
      <td>
        <Time at={created_at} />
      </td>
      <td>{expires_at === undefined ? "never" : <Time at={expires_at} />}</td>
      <td class="keys-end">
        {revoked_at === undefined ? (
          <button
            type="button"
            class="quiet"
            aria-label={`Revoke ${label ?? hint}`}
            onClick={() => revoke(apiKey)}
          >
            Revoke …
          </button>
        ) : (
          <Time at={revoked_at} />
        )}
      </td>
    </tr>
  )
}

const heads = ["Key", "May", "State", "Last used", "Created", "Expires", "Revoked"]

const Table = ({
  keys,
  revoke
}: {
  readonly keys: ReadonlyArray<ApiKey>
  readonly revoke: (key: ApiKey) => void
}) => (
  <Scrolls label="Keys, as a table">
    <table>
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col" class={head === "Revoked" ? "keys-end" : undefined}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <Row key={key.id} apiKey={key} revoke={revoke} />
        ))}
      </tbody>
    </table>
  </Scrolls>
)

export const TenantKeys = ({
  tenant,
  view
}: {
  readonly tenant: string
  readonly view: KeysView
}) => {
  const path = `/v1/admin/tenants/${encodeURIComponent(tenant)}/keys`
  const query = `?page=${view.keysPage}&page_size=${PAGE_SIZE}`
  const list = useAnswer<ApiKeyList>(path + query, undefined, "admin")
  const leaving = useSignal<ApiKey | undefined>(undefined)
  const said = useSignal<string | undefined>(undefined)
  return (
    <Card
      title={`Keys of ${tenant}`}
      aside={
        <button type="button" class="quiet" onClick={list.reload} disabled={list.isLoading}>
          {list.isLoading ? "Loading …" : "Load again"}
        </button>
      }
    >
      <p role="status" class="keys-said">
        {said.value === undefined ? undefined : <State tone="good">{said.value}</State>}
      </p>
      <Answered answer={list} what="the keys">
        {({ keys, total }) => (
          <>
            <NewKey path={path} onMade={list.reload} />
            {keys.length === 0 ? (
              <Empty title={total === 0 ? "No keys yet" : "None on this page"}>
                <p>Without a key nobody can write or read what the tenant has.</p>
              </Empty>
            ) : (
              <Table keys={keys} revoke={(key) => (leaving.value = key)} />
            )}
            <PageLinks
              label="Pages of keys"
              noun="key"
              page={view.keysPage}
              size={PAGE_SIZE}
              total={total}
              to={(keysPage) => keysAddress({ ...view, keysPage })}
            />
            <p class="faint">
              The use of a key is written once an hour: the last one may be up to an hour later than
              is said here.
            </p>
          </>
        )}
      </Answered>
      {leaving.value === undefined ? undefined : (
        <RevokeKey
          apiKey={leaving.value}
          path={path}
          onClose={(isRevoked) => {
            if (isRevoked) {
              said.value = `${leaving.value?.label ?? leaving.value?.hint} is revoked`
              list.reload()
            }
            leaving.value = undefined
          }}
        />
      )}
    </Card>
  )
}
