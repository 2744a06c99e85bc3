/**
 * Queries and ids of paths as schemas: what they read, what they refuse in whose words, and what
 * waits until the handler asks.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import {
  lateQueryOf,
  pathId,
  queryOf,
  queryTableOf,
  refusalIn
} from "../../../src/http/contract/Requests.ts"
import { conditionParameters } from "../../../src/http/events/EventParameters.ts"
import {
  choiceParameter,
  integerParameter,
  refuseInverted,
  required
} from "../../../src/http/messages/QueryParameters.ts"

const parameters = {
  first: integerParameter({ minimum: 1, description: "The first one.", required: true }),
  last: integerParameter({ minimum: 1, description: "The last one." }),
  order: choiceParameter(["asc", "desc"], { description: "Which way." })
}

const range = {
  read: (values: { readonly first?: number; readonly last?: number }) => {
    refuseInverted(["first", "last"], values.first, values.last)
    return { first: required(values.first, "first"), last: values.last }
  }
}

/** What a schema reads, or the refusal that its issue stands for. */
const read = <A>(schema: Schema.Codec<A, any>, texts: unknown) =>
  Schema.decodeUnknownResult(schema)(texts).pipe(
    Result.mapError(({ issue }) => {
      const { code, field, message } = refusalIn(issue)!
      return { code, field, message }
    })
  )

describe("a query", () => {
  it("is the values of its parameters, or what its route reads in them", () => {
    const texts = { first: "2", order: "asc" }
    assert.deepStrictEqual(Result.getOrThrow(read(queryOf(parameters), texts)), {
      first: 2,
      order: "asc"
    })
    assert.deepStrictEqual(Result.getOrThrow(read(queryOf(parameters, range), texts)), {
      first: 2,
      last: undefined
    })
  })

  it("is refused in the words of the parameter, or of the route", () => {
    const query = queryOf(parameters, range)
    const refusals = [
      [{ first: "x" }, "invalid_request", "first", 'first: must be an integer from 1 on, not "x"'],
      [{ last: "2" }, "invalid_request", "first", "first: is required"],
      [{ first: "3", last: "2" }, "invalid_range", "first", undefined],
      [{ first: "3", order: "up" }, "invalid_request", "order", undefined]
    ] as const
    for (const [texts, code, field, message] of refusals) {
      const refusal = Result.getOrThrow(Result.flip(read(query, texts)))
      assert.deepInclude(refusal, { code, field })
      if (message !== undefined) assert.strictEqual(refusal.message, message)
    }
  })

  it("holds conditions where its route takes them, with their signs and as often as given", () => {
    const query = queryOf(parameters, {
      conditions: conditionParameters,
      read: (_, conditions) => conditions
    })
    const texts = { order: "asc", "metadata.a.b>5": "", "outcome!": ["error", "failure"] }
    assert.deepStrictEqual(Result.getOrThrow(read(query, texts)), [
      { label: "metadata.a.b>", name: "metadata.a.b", sign: ">", values: "5" },
      { label: "outcome!", name: "outcome", sign: "!=", values: "error" },
      { label: "outcome!", name: "outcome", sign: "!=", values: "failure" }
    ])
  })

  it.effect("waits for its handler where something else is refused first", () =>
    Effect.gen(function* () {
      const late = Result.getOrThrow(read(lateQueryOf(parameters, range), { first: "x" }))
      assert.strictEqual((yield* Effect.flip(late)).field, "first")
    })
  )

  it("says which parameters its endpoint knows; without one there are none", () => {
    const endpoint = (query?: Schema.Codec<unknown, any>) =>
      queryTableOf(HttpApiEndpoint.get("one", "/one", query && { query }) as never).parameters
    assert.hasAllKeys(endpoint(queryOf(parameters)), Object.keys(parameters))
    assert.isEmpty(endpoint())
  })
})

describe("an id in a path", () => {
  it("names nothing if it can be none", () => {
    assert.deepStrictEqual(Result.getOrThrow(read(pathId("span", "one"), "span_1")), "span_1")
    for (const text of ["", "\0", "x".repeat(257)]) {
      const refusal = Result.getOrThrow(Result.flip(read(pathId("span", "one"), text)))
      assert.deepInclude(refusal, { code: "not_found", message: "there is no such span" })
    }
  })
})
