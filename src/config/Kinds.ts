/**
 * The forms that the value of a variable can have: what is allowed, said in the help and in
 * refusals, and how the text becomes a value.
 */
import { Redacted, Result } from "effect"
import { isVkey } from "../domain/chain/Checkpoint.ts"
import { isApiKeyForm, isTenantId } from "../domain/Identifiers.ts"
import { scopes } from "../domain/registry/RegistryEntry.ts"
import type { BootstrapKey } from "./Config.ts"

/** How a text becomes a value; a failure says what is wrong with it. */
export interface Kind<A> {
  readonly allowed: string
  readonly parse: (text: string) => Result.Result<A, string>
  /** The value is never shown. */
  readonly secret?: true
}

/** Without a unit it is a port. */
export const integer = (minimum: number, maximum: number, unit?: string): Kind<number> => ({
  allowed:
    unit === undefined
      ? `an integer from ${minimum} to ${maximum}`
      : `${minimum} to ${maximum} ${unit}`,
  parse: (text) => {
    if (!/^\d{1,15}$/.test(text)) return Result.fail("is not an integer")
    const value = Number(text)
    if (value < minimum) return Result.fail("is too small")
    return value > maximum ? Result.fail("is too large") : Result.succeed(value)
  }
})

export const text = (pattern: RegExp, allowed: string): Kind<string> => ({
  allowed,
  parse: (value) =>
    pattern.test(value) ? Result.succeed(value) : Result.fail("is not of that form")
})

export const secretText = (lengthMin: number, allowed: string): Kind<Redacted.Redacted> => ({
  allowed,
  secret: true,
  parse: (value) => {
    if (!/^[\x21-\x7e]+$/.test(value)) return Result.fail("has a space or a non-ASCII character")
    return value.length < lengthMin
      ? Result.fail(`has only ${value.length} characters`)
      : Result.succeed(Redacted.make(value))
  }
})

export const password: Kind<Redacted.Redacted> = {
  allowed: "any text",
  secret: true,
  parse: (value) => Result.succeed(Redacted.make(value))
}

export const oneOf = <const Names extends ReadonlyArray<string>>(
  names: Names
): Kind<Names[number]> => ({
  allowed: names.join(", "),
  parse: (value) =>
    names.includes(value) ? Result.succeed(value) : Result.fail("is none of these")
})

export const listOf = <A>(kind: Kind<A>, allowed: string): Kind<ReadonlyArray<A>> => ({
  allowed,
  parse: (value) => {
    const items: Array<A> = []
    for (const [index, item] of value.split(",").entries()) {
      const parsed = kind.parse(item.trim())
      if (Result.isFailure(parsed)) {
        return Result.fail(`has an item, number ${index + 1}, that ${parsed.failure}`)
      }
      items.push(parsed.success)
    }
    return Result.succeed(items)
  },
  ...(kind.secret ? { secret: true as const } : {})
})

export const path = text(/^[^\0]+$/, "a path")
export const anyText = text(/^[^\0]+$/, "any text")

export const url = (allowed: string, refuse: (url: URL) => string | undefined): Kind<string> => ({
  allowed,
  parse: (value) => {
    const parsed = URL.canParse(value) ? new URL(value) : undefined
    if (parsed === undefined) return Result.fail("is not a URL")
    if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
      return Result.fail("is neither http nor https")
    }
    if (parsed.username !== "" || parsed.password !== "") return Result.fail("holds a user name")
    if (parsed.search !== "" || parsed.hash !== "") return Result.fail("has a query or a fragment")
    const refusal = refuse(parsed)
    return refusal === undefined
      ? Result.succeed(parsed.href.replace(/\/+$/, ""))
      : Result.fail(refusal)
  }
})

export const pathOfUrl = (parsed: URL) => (parsed.pathname === "/" ? undefined : "has a path")

export const origin: Kind<string> = {
  allowed: "an origin such as https://console.example.com, or *",
  parse: (value) =>
    value === "*" || (URL.canParse(value) && new URL(value).origin === value)
      ? Result.succeed(value)
      : Result.fail("is not an origin")
}

export const vkey: Kind<string> = {
  allowed: "name+id+base64",
  parse: (value) =>
    isVkey(value) ? Result.succeed(value) : Result.fail("is not a C2SP Ed25519 public key")
}

export const broker: Kind<string> = {
  allowed: "host:port",
  parse: (value) => {
    const port = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(value)?.[1]
    return port !== undefined && Number(port) >= 1 && Number(port) <= 65_535
      ? Result.succeed(value)
      : Result.fail("is not host:port")
  }
}

const durationUnits: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000
}

export const retention: Kind<number | "forever"> = {
  allowed: "forever, or a number with m, h or d such as 400d",
  parse: (value) => {
    if (value === "forever") return Result.succeed(value)
    const [, count, unit] = /^([1-9]\d{0,8})([mhd])$/.exec(value) ?? []
    return count === undefined || unit === undefined
      ? Result.fail("is not a time")
      : Result.succeed(Number(count) * (durationUnits[unit] ?? 0))
  }
}

export const bootstrapKey: Kind<BootstrapKey> = {
  allowed: "key=tenant:scope+scope",
  secret: true,
  parse: (item) => {
    const [, key = "", tenantId = "", scopeText = ""] = /^([^=]*)=([^:]*):(.*)$/.exec(item) ?? []
    if (!isApiKeyForm(key)) {
      return Result.fail("has no key of the form alk_live_ or svc_live_ and 32 to 128 of A-Za-z0-9")
    }
    if (!isTenantId(tenantId)) {
      return Result.fail("has no tenant of the form [a-z0-9][a-z0-9_-]{0,62}")
    }
    const named = scopeText.split("+")
    const unknown = named.find((name) => !(scopes as ReadonlyArray<string>).includes(name))
    return unknown === undefined
      ? Result.succeed({
          key: Redacted.make(key),
          tenantId,
          scopes: scopes.filter((scope) => named.includes(scope))
        })
      : Result.fail("has a scope that is neither read nor write")
  }
}
