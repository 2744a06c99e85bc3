/**
 * `/.well-known/alk-keys.json`: the public keys of all checkpoints, for auditors, as a JSON Web Key
 * Set (RFC 7517, RFC 8037) and as C2SP writes them. Needs no key and shows nothing of a tenant.
 */
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { PublishedKeys, type PublishedKey } from "../actors/PublishedKeys.ts"
import { json } from "./Answer.ts"
import { withoutQuery } from "./KnownQuery.ts"
import { PUBLIC_KEYS_PATH } from "./OpsContract.ts"

/** Seconds that a cache may keep the answer: a new key signs only after it is published. */
const MAX_AGE_SECONDS = 60

const jwkOf = ({ keyId, publicKey }: PublishedKey) => ({
  kty: "OKP",
  crv: "Ed25519",
  x: Buffer.from(publicKey, "base64").toString("base64url"),
  kid: keyId,
  use: "sig",
  alg: "EdDSA"
})

/** Keys in the order in which they were added; old ones stay. */
export const keysDocument = (keys: ReadonlyArray<PublishedKey>) => ({
  keys: keys.map(jwkOf),
  vkeys: keys.map(({ vkey }) => vkey)
})

/** The route, added to the router. */
export const layerPublicKeys: Layer.Layer<
  never,
  never,
  HttpRouter.HttpRouter | PublishedKeys
> = HttpRouter.use(
  Effect.fnUntraced(function*(router) {
    const published = yield* PublishedKeys
    const headers = { "cache-control": `public, max-age=${MAX_AGE_SECONDS}` }
    yield* router.add(
      "GET",
      PUBLIC_KEYS_PATH,
      withoutQuery(Effect.map(published.all, (keys) => json(keysDocument(keys), { headers })))
    )
  })
)
