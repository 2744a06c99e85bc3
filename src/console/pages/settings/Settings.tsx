/** How the console looks, who is signed in and for how long, and what this browser keeps. */

import type { Session } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Answered } from "../../parts/Answered.tsx"
import { Ago, Card, Id, Time } from "../../parts/Basics.tsx"
import { keyChoices, keys, theme, themes, zone, zones } from "../../state/Preferences.ts"
import { adminSession, signedIn, signOut } from "../../state/Session.ts"
import { Facts } from "../keys/Facts.tsx"
import { Limits, useMe } from "../keys/OwnKey.tsx"
import { Kept } from "./Kept.tsx"

const Options = <A extends string>({
  name,
  options,
  title,
  titles,
  value
}: {
  readonly name: string
  readonly title: string
  readonly options: ReadonlyArray<A>
  readonly titles: Readonly<Record<A, string>>
  readonly value: { value: A }
}) => (
  <fieldset class="settings-options">
    <legend>{title}</legend>
    {options.map((option) => (
      <label key={option}>
        <input
          type="radio"
          name={name}
          checked={value.value === option}
          onChange={() => (value.value = option)}
        />
        {titles[option]}
      </label>
    ))}
  </fieldset>
)

const themeTitles: Readonly<Record<(typeof themes)[number], string>> = {
  system: "as the system has them",
  light: "light",
  dark: "dark"
}

const zoneTitles: Readonly<Record<(typeof zones)[number], string>> = {
  UTC: "UTC",
  local: `of this machine (${Intl.DateTimeFormat().resolvedOptions().timeZone})`
}

const keyTitles: Readonly<Record<(typeof keyChoices)[number], string>> = {
  on: "on (? shows them)",
  off: "off; Ctrl K and Tab still lead everywhere"
}

const Looks = () => (
  <Card title="How it looks">
    <Options name="theme" title="Colours" options={themes} titles={themeTitles} value={theme} />
    <Options name="zone" title="Times" options={zones} titles={zoneTitles} value={zone} />
    <Options
      name="keys"
      title="Shortcuts of one key"
      options={keyChoices}
      titles={keyTitles}
      value={keys}
    />
    <p class="faint">
      An exact time is shown when you point at it. All of this is kept in this browser; the menu has
      colours and times too.
    </p>
  </Card>
)

const SessionFacts = ({ session }: { readonly session: Session }) => (
  <Facts
    facts={[
      ["Tenant", <strong key="tenant">{session.tenant_id}</strong>],
      [
        "Signed in with",
        session.key_id === "admin" ? "the admin token" : <Id value={session.key_id} length={28} />
      ],
      ["Since", <Time key="since" at={session.created_at} />],
      [
        "Ends",
        <>
          <Time at={session.expires_at} /> (<Ago at={session.expires_at} />)
        </>
      ],
      ["Unused", `it ends after ${session.idle_seconds / 60} minutes`]
    ]}
  />
)

const SignedIn = ({ session }: { readonly session: Session }) => {
  const admin = adminSession.value
  return (
    <Card title="Signed in">
      <SessionFacts session={session} />
      {admin === null || admin.id === session.id ? undefined : (
        <>
          <h3>Admin session beside it</h3>
          <SessionFacts session={admin} />
          <p>
            <a href="/keys">End it alone</a>
          </p>
        </>
      )}
      <p>
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      </p>
      <p class="faint">
        Signing out ends the sessions of this browser on every machine of the service: a copy of its
        cookie is worth nothing afterwards. Other browsers stay signed in until their sessions end.{" "}
        <strong>To sign out everywhere at once</strong>, revoke the key on the page{" "}
        <a href="/keys">Keys</a>: every session of it ends within a second.
      </p>
    </Card>
  )
}

const KeyLimits = () => {
  const me = useMe()
  return (
    <Card title="What the key may do">
      <Answered answer={me} what="the limits">
        {(data) => (
          <>
            <p>
              {data.key.label ?? "This key"} may <strong>{data.scopes.join(" and ")}</strong>.
            </p>
            <Limits me={data} />
          </>
        )}
      </Answered>
    </Card>
  )
}

/** What the address of the service says to programs. */
interface Landing {
  readonly service: string
  readonly version: string
}

const links = [
  ["/docs/guide", "Guide"],
  ["/docs", "API reference"],
  ["/openapi.json", "OpenAPI document"],
  ["/asyncapi.yaml", "AsyncAPI document of the topics"],
  ["/.well-known/alk-keys.json", "Public keys that sign checkpoints"]
] as const

const About = () => {
  const landing = useAnswer<Landing>("/")
  return (
    <Card title="This service">
      <Answered answer={landing} what="the versions">
        {({ service, version }) => (
          <Facts
            facts={[
              ["Service", service],
              ["Version of the API", version],
              ["Address", location.origin]
            ]}
          />
        )}
      </Answered>
      <p>
        <a href="/start">How to send events and runs</a>
      </p>
      <ul class="rows">
        {links.map(([path, title]) => (
          <li key={path}>
            <a href={path} target="_blank" rel="noreferrer">
              {title}
            </a>
          </li>
        ))}
      </ul>
    </Card>
  )
}

export const Settings = () => {
  const { value } = signedIn
  return (
    <>
      <h1>Settings</h1>
      <div class="settings">
        <Looks />
        {value.is === "in" ? <SignedIn session={value.session} /> : undefined}
        <KeyLimits />
        <About />
        <Kept />
      </div>
    </>
  )
}
