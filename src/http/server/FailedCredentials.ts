/**
 * Wrong keys and tokens, counted per client address, once for all processes of the port: after a
 * number of them in a minute they are answered 429 instead of 401. Right keys are not counted, so
 * the wrong keys of one client do not lock out other clients of the same address.
 */
import { Context, Effect, Layer, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import { ApiError } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { credentialFailed } from "./Metrics.ts"
import { ProcessGroup, type SharedBuckets } from "./ProcessGroup.ts"
import { TokenBuckets } from "./TokenBuckets.ts"

/** Client addresses that are told apart at the same time, about 200 bytes each. */
const ADDRESSES_MAX = 10_000
/** Groups of an IPv6 address that belong to one customer: its first 64 bits. */
const IPV6_GROUPS = 4

/** The answers to wrong credentials. */
export class FailedCredentials extends Context.Service<
  FailedCredentials,
  {
    /** The refusal of the current request's wrong credential: this 401, or 429. */
    refusal(
      unauthenticated: ApiError
    ): Effect.Effect<ApiError, never, HttpServerRequest.HttpServerRequest>
    /** The same for what a client of this address has sent in no request of HTTP. */
    refusalOf(unauthenticated: ApiError, address: string): Effect.Effect<ApiError>
  }
>()("alk/http/FailedCredentials") {}

/** Who is guessing: an IPv4 address, or the network of an IPv6 address, of which one has many. */
export const clientNetwork = (address: string): string => {
  const bare = address.replace(/%.*$/, "").replace(/^::ffff:(?=\d+\.)/, "")
  if (!bare.includes(":")) return bare
  const [head = "", tail] = bare.split("::")
  const groups = head === "" ? [] : head.split(":")
  const rest = tail === undefined || tail === "" ? [] : tail.split(":")
  const missing = tail === undefined ? 0 : Math.max(0, 8 - groups.length - rest.length)
  const zeros = Array.from({ length: missing }, () => "0")
  return `${[...groups, ...zeros, ...rest].slice(0, IPV6_GROUPS).join(":")}::/64`
}

const tooMany = (wait: number): ApiError =>
  new ApiError({
    code: "rate_limited",
    message:
      `too many wrong keys from this address, and this one is wrong too; try again in ${wait} s `
      + "with a right one",
    headers: { "retry-after": String(wait) }
  })

const refusing = (
  refusalOf: FailedCredentials["Service"]["refusalOf"]
): FailedCredentials["Service"] =>
  FailedCredentials.of({
    refusalOf,
    refusal: (unauthenticated) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ remoteAddress }) =>
        refusalOf(
          unauthenticated,
          Option.getOrElse(remoteAddress, () => "unknown")
        )
      )
  })

const counting = (perMinute: number, shared: SharedBuckets): FailedCredentials["Service"] => {
  const buckets = new TokenBuckets({
    perSecond: perMinute / 60,
    capacity: perMinute,
    namesMax: ADDRESSES_MAX
  })
  const take = shared("failed_keys", buckets)
  /** Addresses whose guesses are being slowed down and have been logged. */
  const slowed = new Set<string>()
  return refusing(
    Effect.fnUntraced(function* (unauthenticated, address) {
      const network = clientNetwork(address)
      const { admitted, left } = yield* take(network, 1)
      yield* credentialFailed(admitted ? 401 : 429)
      if (admitted) {
        if (left >= perMinute - 1) slowed.delete(network)
        return unauthenticated
      }
      if (!slowed.has(network)) {
        if (slowed.size >= ADDRESSES_MAX) slowed.clear()
        slowed.add(network)
        yield* Effect.logWarning("too many wrong keys from one address: slowed down").pipe(
          Effect.annotateLogs({ address: network, per_minute: perMinute })
        )
      }
      return tooMany(buckets.secondsUntilOne(left))
    })
  )
}

/** Counts unless the number per minute is 0. */
export const layerFailedCredentials: Layer.Layer<FailedCredentials, never, ApiSettings> =
  Layer.effect(
    FailedCredentials,
    Effect.gen(function* () {
      const { failedKeysPerMinuteMax } = yield* ApiSettings
      const { sharedBuckets } = yield* ProcessGroup
      return failedKeysPerMinuteMax === 0
        ? refusing((unauthenticated) => Effect.as(credentialFailed(401), unauthenticated))
        : counting(failedKeysPerMinuteMax, sharedBuckets)
    })
  )
