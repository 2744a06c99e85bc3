/** The key that this browser has signed in with. The key itself is not stored. */

import type { Me } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Answered } from "../../parts/Answered.tsx"
import { Ago, Card, Id, Time } from "../../parts/Basics.tsx"
import { bytes, count } from "../../parts/Format.ts"
import { Facts } from "./Facts.tsx"

export const useMe = () => useAnswer<Me>("/v1/me")

/**
 * What the limits are called here; those of the API that do not apply in a browser are left out.
 */
const limitTexts = ({ limits }: Me): ReadonlyArray<readonly [name: string, text: string]> => [
  ["One event", bytes(limits.event_bytes_max)],
  ["Its metadata", bytes(limits.metadata_bytes_max)],
  ["Events of a request", count(limits.batch_items_max)],
  ["Body of a request", bytes(limits.body_bytes_max)],
  ["Payload of a trace event", bytes(limits.payload_bytes_max)],
  ["Open streams of the tenant", count(limits.streams_max)],
  [
    "Events of the tenant in a second",
    limits.events_per_second_max === null ? "no limit" : count(limits.events_per_second_max)
  ],
  [
    "Exports of the tenant at once",
    limits.exports_at_once_max === null ? "no limit" : count(limits.exports_at_once_max)
  ]
]

export const Limits = ({ me }: { readonly me: Me }) => (
  <Facts facts={limitTexts(me).map(([name, text]) => [name, <span class="number">{text}</span>])} />
)

const KeyFacts = ({ me }: { readonly me: Me }) => {
  const { created_at, expires_at, hint, id, label } = me.key
  return (
    <Facts
      facts={[
        ["Label", label ?? <span class="faint">none</span>],
        ["Begins with", hint === undefined ? undefined : <code>{hint}</code>],
        ["Id", <Id key="id" value={id} length={28} />],
        ["Tenant", <strong key="tenant">{me.tenant_id}</strong>],
        ["May", me.scopes.join(" and ")],
        ["Created", created_at === undefined ? undefined : <Time at={created_at} />],
        [
          "Expires",
          expires_at === undefined ? (
            "never"
          ) : (
            <>
              <Time at={expires_at} /> (<Ago at={expires_at} />)
            </>
          )
        ]
      ]}
    />
  )
}

export const OwnKey = () => {
  const me = useMe()
  return (
    <Card title="Your key">
      <Answered answer={me} what="your key">
        {(data) => (
          <>
            <KeyFacts me={data} />
            <details>
              <summary>Limits</summary>
              <Limits me={data} />
            </details>
          </>
        )}
      </Answered>
    </Card>
  )
}
