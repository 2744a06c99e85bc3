/**
 * `/.well-known/alk-keys.json`: the public keys of all checkpoints, for auditors, as a JSON Web Key
 * Set (RFC 7517, RFC 8037) and as C2SP writes them. Needs no key and shows nothing of a tenant.
 */
import { Effect, type Layer } from "effect"
import { HttpRouter } from "effect/http"
import { type PublishedKey, PublishedKeys } from "../../actors/follower/PublishedKeys.ts"
import { isTrusted } from "../../domain/chain/KeyStandings.ts"
import { defined } from "../../domain/Defined.ts"
import { json } from "../messages/Answer.ts"
import { withoutQuery } from "../messages/KnownQuery.ts"
import { PUBLIC_KEYS_PATH } from "../operations/OpsContract.ts"

/** Seconds that a cache may keep the answer: a new key signs only after it is published. */
const MAX_AGE_SECONDS = 60

/** Members beside those of RFC 7517 say what the key counts for, and which key endorsed it. */
const jwkOf = (key: PublishedKey) => ({
  kty: "OKP",
  crv: "Ed25519",
  x: Buffer.from(key.publicKey, "base64").toString("base64url"),
  kid: key.keyId,
  use: "sig",
  alg: "EdDSA",
  trusted: key.trusted,
  ...defined({
    endorsed_by: key.endorsedBy,
    endorsement: key.endorsement,
    retired_at: key.retiredAt
  })
})

/**
 * Keys in the order in which they were added; old ones stay. `vkeys` lists those that count: not the
 * unendorsed.
 */
export const keysDocument = (keys: ReadonlyArray<PublishedKey>) => ({
  keys: keys.map(jwkOf),
  vkeys: keys.filter(isTrusted).map(({ vkey }) => vkey)
})

/** The route, added to the router. */
export const layerPublicKeys: Layer.Layer<never, never, HttpRouter.HttpRouter | PublishedKeys> =
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const published = yield* PublishedKeys
      const headers = { "cache-control": `public, max-age=${MAX_AGE_SECONDS}` }
      yield* router.add(
        "GET",
        PUBLIC_KEYS_PATH,
        withoutQuery(Effect.map(published.all, (keys) => json(keysDocument(keys), { headers })))
      )
    })
  )
