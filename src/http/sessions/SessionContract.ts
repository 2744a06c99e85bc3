/** The routes that sign a browser in and out. Says nothing of how sessions are kept. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { exampleEvent } from "../../contracts/ExampleEvent.ts"
import { natural, text } from "../../domain/Forms.ts"
import * as Registry from "../../domain/registry/RegistryEntry.ts"
import { SESSIONS_MAX } from "../../domain/registry/Sessions.ts"
import {
  ADMIN_SESSION_LIMITS,
  CODE_LASTS,
  SESSION_LIMITS
} from "../../services/administration/Sessions.ts"
import { optionalInput, textInput } from "../contract/Bodies.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { Timestamp } from "../contract/ContractSchemas.ts"
import { operation } from "../contract/Operation.ts"
import { SESSION_HEADER, sessionKinds } from "./SessionCookies.ts"

/** Characters of a key or of a code at most. */
const CREDENTIAL_LENGTH_MAX = 512

const Session = Schema.Struct({
  id: text("Names the session; not its token."),
  tenant_id: text("Whose data it shows."),
  key_id: text("Id of the key that it acts for; `admin` for the admin token."),
  scopes: Schema.Array(Schema.Literals(Registry.scopes)),
  created_at: Timestamp,
  expires_at: Timestamp,
  idle_seconds: natural("Unused for longer, it ends before.")
}).annotate({ identifier: "Session" })

const State = Schema.Struct({
  session: Schema.NullOr(Session).annotate({ description: "Of an API key; null: signed out." }),
  admin: Schema.NullOr(Session).annotate({ description: "Of the admin token; null: signed out." })
}).annotate({
  identifier: "SessionState",
  examples: [
    {
      session: {
        id: "ses_5d7c1f2e9a3b4c6d8e0f1a2b3c4d5e6f",
        tenant_id: exampleEvent.tenant_id,
        key_id: "key_01980d2c-7a5b-7c3e-9d41-0f6a2b8c4d5e",
        scopes: ["read"],
        created_at: "2026-11-21T10:00:00.000000Z",
        expires_at: "2026-11-21T22:00:00.000000Z",
        idle_seconds: SESSION_LIMITS.idle
      },
      admin: null
    }
  ]
})

export const SessionInput = Schema.Struct({
  key: optionalInput(textInput(CREDENTIAL_LENGTH_MAX, "An API key, or the admin token.")),
  code: optionalInput(
    textInput(CREDENTIAL_LENGTH_MAX, "A sign-in code, as the first start shows it: works once.")
  )
}).annotate({
  identifier: "SessionInput",
  description: "One of the two.",
  examples: [{ key: "alk_live_2f9d8c7b6a5e4d3c2b1a0f9e8d7c6b5a" }]
})

const hours = (seconds: number): string =>
  seconds >= 3_600 ? `${seconds / 3_600} hours` : `${seconds / 60} minutes`

const sessionHeader = {
  [SESSION_HEADER]: {
    description:
      "`session`: only that of an API key is meant, `admin`: only that of the admin token. Both are "
      + "if it is missing.",
    schema: { type: "string", enum: sessionKinds }
  }
}

const cookie = { "Set-Cookie": "The token: HttpOnly, SameSite=Strict, Secure where TLS is." }

const startSession = HttpApiEndpoint.post("startSession", "/v1/session", {
  payload: SessionInput,
  success: State.pipe(HttpApiSchema.status(201)),
  error: errorsOf("object", 401, 409, 413, 415, 429, 503)
}).pipe(
  operation({
    summary: "Sign a browser in",
    description:
      "For the console: a cookie in place of the key, which no script can read and no page of "
      + `another origin can use. It lasts ${hours(SESSION_LIMITS.lasts)}, `
      + `${hours(SESSION_LIMITS.idle).replace("1 hours", "1 hour")} unused, with the admin token `
      + `${hours(ADMIN_SESSION_LIMITS.lasts).replace("1 hours", "1 hour")} and `
      + `${hours(ADMIN_SESSION_LIMITS.idle)}; it ends with its key, and with \`DELETE\`. A code is `
      + `valid ${hours(CODE_LASTS)} and works once. A tenant has at most ${SESSIONS_MAX} open `
      + "sessions. The chain of the tenant `_system` holds who signed in and out. Programs send the "
      + "key itself, as `Authorization: Bearer`.",
    headers: sessionHeader,
    responseHeaders: { 201: cookie }
  })
)

const getSession = HttpApiEndpoint.get("getSession", "/v1/session", {
  success: State,
  error: errorsOf("object", 503)
}).pipe(
  operation({
    summary: "Who is signed in",
    description: "By the cookies of this request. 200 also where nobody is.",
    responseHeaders: { 200: cookie }
  })
)

const endSession = HttpApiEndpoint.delete("endSession", "/v1/session", {
  success: HttpApiSchema.NoContent.annotate({ description: "The sessions have ended." }),
  error: errorsOf("object", 401, 503)
}).pipe(
  operation({
    summary: "Sign out",
    headers: sessionHeader,
    description:
      "Ends the sessions of this request's cookies, everywhere: a copy of a token is worth nothing "
      + "afterwards.",
    responseHeaders: { 204: { "Set-Cookie": "Removes the tokens." } }
  })
)

/** The routes of the tag Sessions. */
export class SessionApi extends HttpApiGroup.make("Sessions")
  .add(startSession, getSession, endSession)
  .annotateMerge(OpenApi.annotations({ description: "Signing in to the console." })) {}
