/**
 * What the parameters of a query mean as a filter: what each form is read as, that an evaluator
 * written here chooses the same events, and that a filter shown as parameters is read back.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import { conditionsOf, type EventFilter } from "../../../src/domain/events/EventFilter.ts"
import {
  conditionParameters,
  filterParameters,
  toFilter
} from "../../../src/http/events/EventParameters.ts"
import { ApiError } from "../../../src/http/messages/ApiError.ts"
import { targetWithMoments } from "../../../src/http/messages/Moments.ts"
import { checkQuery, readTexts } from "../../../src/http/messages/QueryParameters.ts"
import { matches } from "../../support/Matches.ts"
import { runs } from "../../support/Runs.ts"

const DAY_MS = 86_400_000

const table = { parameters: filterParameters, conditions: conditionParameters }

const filterAt = (target: string, at?: string): EventFilter => {
  const { conditions, now, values } = readTexts(filterParameters, checkQuery(target, table), at)
  return toFilter(values, conditions, now)
}

const filterOf = (query: string): EventFilter => filterAt(`/?${query}`)

const meanings: ReadonlyArray<readonly [query: string, filter: Partial<EventFilter>]> = [
  ["actor_id=u_1", { actorId: "u_1" }],
  ["actor_id=u_1&actor_id=u_1", { actorId: "u_1" }],
  ["actor_id=a\\,b", { actorId: "a,b" }],
  ["actor_id=u_1\\*", { actorId: "u_1*" }],
  ["actor_id=C:\\dir", { actorId: "C:\\dir" }],
  ["actor_id=a\\\\", { actorId: "a\\" }],
  ["action=document.*", { actionPrefix: "document." }],
  ["action=doc*", { where: 'action:"doc"*' }],
  ["action=a,b", { where: "action:a OR action:b" }],
  ["actor_id=a,b", { where: 'actor_id:a OR actor_id:b OR actor_id:"a,b"' }],
  [
    "resource_id!=CN\\,a,b",
    { where: 'NOT (resource_id:"CN,a" OR resource_id:b OR resource_id:"CN\\\\,a,b")' }
  ],
  ["metadata.tags[].v=prod", { metadata: [{ path: "tags[].v", value: "prod" }] }],
  ["metadata.tags[].v!=prod", { where: "NOT metadata.tags[].v:prod" }],
  ["action=a&action=b", { where: "action:a OR action:b" }],
  ["action=document.*,b", { where: 'action:"document."* OR action:b' }],
  ["outcome!=success", { where: "NOT outcome:success" }],
  ["outcome%21=success", { where: "NOT outcome:success" }],
  ["outcome%21%3Dsuccess", { where: "NOT outcome:success" }],
  ["outcome!=error,failure", { where: "NOT (outcome:error OR outcome:failure)" }],
  ["outcome!=error&outcome!=failure", { where: "NOT (outcome:error OR outcome:failure)" }],
  ["actor_id=u_1*", { where: 'actor_id:"u_1"*' }],
  ["actor_id=u_1*&actor_id!=u_12", { where: 'actor_id:"u_1"* NOT actor_id:u_12' }],
  ["resource_name=*", { where: "resource_name:*" }],
  ["resource_name!=*", { where: "NOT resource_name:*" }],
  ["actor_email=a@example.com", { where: "actor_email:a@example.com" }],
  ["sequence_number=5,07", { where: "sequence_number:5 OR sequence_number:7" }],
  ["sequence_number>=5", { where: "sequence_number>=5" }],
  ["sequence_number>5", { where: "sequence_number>5" }],
  ["sequence_number>5&sequence_number<=9", { where: "sequence_number>5 sequence_number<=9" }],
  [
    "timestamp=2026-11-20",
    {
      where: "timestamp>=2026-11-20T00:00:00.000000Z timestamp<=2026-11-20T23:59:59.999999Z"
    }
  ],
  ["created_at<2026-11-20", { where: "created_at<2026-11-20T00:00:00.000000Z" }],
  ["metadata.amount>10000", { where: "metadata.amount>10000" }],
  ["metadata.amount%3E10000", { where: "metadata.amount>10000" }],
  ["metadata.amount%3E10000=", { where: "metadata.amount>10000" }],
  ["metadata.amount>=10000", { where: "metadata.amount>=10000" }],
  ["metadata.amount%3E=10000", { where: "metadata.amount>=10000" }],
  ["metadata.amount%3E%3D10000", { where: "metadata.amount>=10000" }],
  ["metadata.amount%3E%3D=10000", { where: "metadata.amount>=10000" }],
  ["metadata.amount<-1.50", { where: "metadata.amount<-1.5" }],
  ["metadata.amount=*", { where: "metadata.amount:*" }],
  ["metadata.name=a*", { where: 'metadata.name:"a"*' }],
  ["metadata.name=a\\*", { metadata: [{ path: "name", value: "a*" }] }],
  ["metadata.name=a,b", { metadata: [{ path: "name", value: "a,b" }] }],
  ["metadata.name!=a,b", { where: 'NOT metadata.name:"a,b"' }],
  ["metadata.name=a&metadata.name=b", { where: "metadata.name:a OR metadata.name:b" }],
  ["metadata.a>b=1", { metadata: [{ path: "a>b", value: "1" }] }],
  ["metadata.a\\!=1", { metadata: [{ path: "a!", value: "1" }] }],
  ["metadata.a\\>>1", { where: "metadata.a\\>>1" }],
  ["q=a,b*", { q: "a,b*" }],
  ["outcome!=success&where=a OR b", { where: 'NOT outcome:success ("a" OR "b")' }],
  ["outcome!=success&where=a b", { where: 'NOT outcome:success "a" "b"' }],
  ["actor_id=u_1&where=a", { actorId: "u_1", where: '"a"' }],
  ["from=2026-11-01", { from: "2026-11-01T00:00:00.000000Z" }],
  ["to=2026-11-01", { to: "2026-11-01T23:59:59.999999Z" }]
]

const refusals: ReadonlyArray<readonly [query: string, field: string, what: RegExp]> = [
  ["outcome!=nonsense", "outcome!", /must be one of success, failure, error, not "nonsense"/],
  ["outcome=success,", "outcome", /empty value; a comma that is part of a value is written \\,/],
  ["action=,", "action", /empty value/],
  ["actor_id=a*b", "actor_id", /written \\\*/],
  ["actor_id=a**", "actor_id", /written \\\*/],
  ["outcome>5", "outcome>", /has no order/],
  ["outcome>=success", "outcome>=", /has no order/],
  ["outcome!", "outcome!", /is empty/],
  ["outcome!=", "outcome!", /is empty/],
  ["metadata.>5", "metadata.>", /names no path/],
  ["metadata.!=5", "metadata.!", /names no path/],
  ["metadata.amount>", "metadata.amount>=", /is empty/],
  ["metadata.amount>much", "metadata.amount>", /a number/],
  ["metadata.amount>1*", "metadata.amount>", /without \*/],
  ["metadata.a.b.c.d.e.f.g>1", "metadata.a.b.c.d.e.f.g>", /6 segments/],
  ["metadata.a>1&metadata.a>2", "metadata.a>", /more than once/],
  ["sequence_number=1*", "sequence_number", /is no text/],
  ["sequence_number>1,2", "sequence_number>", /must be an integer/],
  ["sequence_number>=9&sequence_number<5", "sequence_number>=", /is after sequence_number</],
  ["timestamp>2026-11-02&timestamp<2026-11-01", "timestamp>", /is after timestamp</],
  ["timestamp=2026-11-02T00:00:00+02:00", "timestamp", /write \+ as %2B/],
  ["outcome=success&outcome!=success", "outcome!", /excludes "success", which outcome asks for/],
  ["actor_id=a*,b&actor_id!=c,a*", "actor_id!", /excludes "a\*"/],
  ["from=-24x", "from", /a time from now such as -24h, not "-24x"/],
  ["from=+2d", "from", /write \+ as %2B/],
  ["to=2026-02-30", "to", /a date/],
  ["from=2026-11-02&to=2026-11-01", "from", /is after to/],
  ["from=-1h&to=-2h", "from", /is after to/],
  ["q!=a", "q!", /takes = only/],
  ["where>5", "where>", /takes = only/],
  ["outcom!=a", "outcom!", /did you mean outcome\?/],
  [`id=${Array.from({ length: 65 }, (_, n) => n).join(",")}`, "id", /at most 64/],
  [
    Array.from({ length: 17 }, (_, n) => `metadata.a=${n}`).join("&"),
    "metadata",
    /16 conditions on metadata/
  ]
]

const refusalOf = (query: string): ApiError => {
  try {
    filterOf(query)
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error(`${query} is not refused`)
}

const event = (index: number, change: Partial<AuditEvent>): AuditEvent => ({
  id: `e${index}`,
  timestamp: `2026-11-2${index % 3}T10:00:00.000000Z`,
  actor: { id: "u_1", type: "human" },
  action: "document.read",
  resource: { id: "doc", type: "document" },
  outcome: "success",
  tenant_id: "acme",
  sequence_number: index + 1,
  created_at: "2026-11-23T10:00:00.000000Z",
  prev_hash: "0".repeat(64),
  content_hash: "0".repeat(64),
  hash: "0".repeat(64),
  ...change
})

const texts = ["u_1", "u_12", "u_1*", "a,b", "\\", "\\,", "*", "a", "!", "1", "C:\\x"]
const events = texts.flatMap((text, index) => [
  event(2 * index, {
    actor: { id: text, type: "human", email: text },
    metadata: { a: text, "b!": [text, index], n: index }
  }),
  event(2 * index + 1, {
    action: text,
    outcome: index % 2 === 0 ? "failure" : "error",
    resource: { id: text, type: text, name: text }
  })
])

/** A condition of the law: the name of a field or path, its sign, and what it compares with. */
interface Given {
  readonly name: string
  readonly sign: "=" | "!=" | ">" | ">=" | "<" | "<="
  readonly values: ReadonlyArray<{ readonly text: string; readonly isOpen: boolean }>
}

/** The values of the event that a name means, by its own reading of the documentation. */
const valuesAt = (of: any, name: string): ReadonlyArray<unknown> => {
  const at = name.startsWith("metadata.")
    ? of.metadata?.[name.slice("metadata.".length)]
    : name
        .replace(/^(actor|resource)_/, "$1.")
        .split(".")
        .reduce((value, key) => value?.[key], of)
  return at === undefined ? [] : [at].flat()
}

const isAsked = (of: AuditEvent, { name, sign, values }: Given): boolean => {
  const found = valuesAt(of, name)
  const [{ text: bound } = { text: "" }] = values
  if (sign === "=" || sign === "!=") {
    const isOne = values.some(({ isOpen, text }) =>
      found.some((value) =>
        isOpen
          ? text === "" || (typeof value === "string" && value.startsWith(text))
          : String(value) === text
      )
    )
    return isOne === (sign === "=")
  }
  return found.some((value) => {
    if (typeof value !== "number") return false
    const order = value - Number(bound)
    return sign === ">"
      ? order > 0
      : sign === ">="
        ? order >= 0
        : sign === "<"
          ? order < 0
          : order <= 0
  })
}

const escaped = (text: string): string => text.replace(/[\\,*]/g, "\\$&")

/** The parameters that say it, encoded as clients do. */
const queryOf = (
  { name, sign, values }: Given,
  isEncoded: boolean,
  isRepeated: boolean
): string => {
  const path = name.replace(/[\\!<>=]/g, "\\$&")
  const said = values.map(({ isOpen, text }) => `${escaped(text)}${isOpen ? "*" : ""}`)
  const plain = isEncoded
    ? (text: string) => encodeURIComponent(`${path}${text}`)
    : (text: string) => `${encodeURIComponent(path)}${text}`
  const pair = (text: string): string => {
    const value = encodeURIComponent(text)
    if (sign === "=") return `${plain("")}=${value}`
    if (sign === "!=") return `${plain("!")}=${value}`
    return sign.length === 2 ? `${plain(sign[0]!)}=${value}` : `${plain(sign)}${value}`
  }
  const isList = !name.startsWith("metadata.") && !isRepeated
  return isList ? pair(said.join(",")) : said.map(pair).join("&")
}

const openText = fc
  .tuple(fc.constantFrom(...texts), fc.boolean(), fc.nat({ max: 3 }))
  .map(([text, isOpen, length]) => ({ text: isOpen ? text.slice(0, length) : text, isOpen }))

const given: fc.Arbitrary<Given> = fc.oneof(
  fc.record({
    name: fc.constantFrom(
      "actor_id",
      "actor_email",
      "action",
      "resource_id",
      "resource_type",
      "resource_name",
      "metadata.a",
      "metadata.b!"
    ),
    sign: fc.constantFrom("=" as const, "!=" as const),
    values: fc.array(openText, { minLength: 1, maxLength: 3 })
  }),
  fc.record({
    name: fc.constantFrom("sequence_number", "metadata.n", "metadata.b!"),
    sign: fc.constantFrom(">" as const, ">=" as const, "<" as const, "<=" as const),
    values: fc.nat({ max: 22 }).map((bound) => [{ text: String(bound), isOpen: false }])
  })
)

describe("the conditions of a query", () => {
  for (const [query, filter] of meanings) {
    it(`${query} is read`, () => {
      const expected = { metadata: [], ...filter }
      const encoded = query.replaceAll("\\", "%5C").replaceAll(" ", "%20")
      assert.deepStrictEqual(filterOf(encoded), expected)
    })
  }

  for (const [query, field, what] of refusals) {
    it(`${query.slice(0, 60)} is refused`, () => {
      const refusal = refusalOf(query)
      assert.strictEqual(refusal.status, 400)
      assert.strictEqual(refusal.field, field)
      assert.match(refusal.message, what)
      assert.isTrue(refusal.message.startsWith(`${field}: `), refusal.message)
    })
  }

  it("reads a time from now at the time of the request", () => {
    const before = Date.now()
    const { from } = filterOf("from=-24h&to=now")
    const after = Date.now()
    // Our time may be some milliseconds beside the wall clock.
    assert.isAtLeast(Date.parse(from!), before - DAY_MS - 3)
    assert.isAtMost(Date.parse(from!), after - DAY_MS + 3)
    assert.deepEqual(Object.keys(filterOf("to=now&from=now")).sort(), ["from", "metadata", "to"])
  })

  it("choose the events that an independent evaluator chooses, in every encoding", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(given, {
          minLength: 1,
          maxLength: 3,
          selector: ({ name }) => name
        }),
        fc.boolean(),
        fc.boolean(),
        (all, isEncoded, isRepeated) => {
          const query = all.map((one) => queryOf(one, isEncoded, isRepeated)).join("&")
          const filter = filterOf(query)
          for (const one of events) {
            const expected = all.every((condition) => isAsked(one, condition))
            assert.strictEqual(matches(filter, one), expected, `${query} of ${one.id}`)
          }
        }
      ),
      { numRuns: runs(20_000) }
    )
  })

  it("mean the same at any time in a target with moments, and are else as they were sent", () => {
    const time = fc.constantFrom("now", "-24h", "now-2w", "%2B5m", "2026-11-20")
    const times = fc.uniqueArray(time, { minLength: 1, maxLength: 3 }).map((all) => all.join(","))
    const pair = fc.oneof(
      fc.tuple(fc.constantFrom("timestamp", "created_at!"), times).map((both) => both.join("=")),
      fc
        .tuple(fc.constantFrom("timestamp>", "created_at%3C", "timestamp%3E%3D"), time)
        .map((both) => both.join("")),
      fc.constantFrom(
        "from=-2w",
        "to=now",
        'where=timestamp>-24h+"now"+created_at:now',
        "metadata.at=now",
        "actor_id=now,-24h",
        "q=a+b%2C",
        "metadata.a!=-24h"
      )
    )
    const [now, later] = ["2026-11-21T12:00:00.000000Z", "2031-01-01T00:00:00.000000Z"]
    const nameOf = (one: string) => one.split("=")[0]!.replace(/(%3C|%3E|>).*/, "$1")
    fc.assert(
      fc.property(fc.uniqueArray(pair, { maxLength: 5, selector: nameOf }), (pairs) => {
        const target = `/v1/events?${pairs.join("&")}`
        const fixed = targetWithMoments(target, { table, now })
        let expected: EventFilter
        try {
          expected = filterAt(target, now)
        } catch (error) {
          assert.instanceOf(error, ApiError)
          return
        }
        assert.deepStrictEqual(filterAt(fixed, later), expected, `${target} ${fixed}`)
        const kept = pairs.filter((one) => !/^(timestamp|created_at|from|to|where)/.test(one))
        assert.includeMembers(fixed.split(/[?&]/), kept)
      }),
      { numRuns: runs(10_000) }
    )
  })

  it("are shown as parameters that mean the same", () => {
    const shown = (filter: EventFilter): string =>
      conditionsOf(filter)
        .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
        .join("&")
    fc.assert(
      fc.property(
        fc.uniqueArray(given, { minLength: 1, maxLength: 3, selector: ({ name }) => name }),
        (all) => {
          const filter = filterOf(all.map((one) => queryOf(one, true, false)).join("&"))
          assert.deepStrictEqual(filterOf(shown(filter)), filter)
        }
      ),
      { numRuns: runs(10_000) }
    )
  })

  it("never fail otherwise, whatever the query is", () => {
    const piece = fc.constantFrom(
      ..."!<>=,*\\&.+%",
      "%3E",
      "%2A",
      "outcome",
      "metadata.a",
      "sequence_number",
      "from",
      "success",
      "5",
      "-24h"
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        try {
          filterOf(pieces.join(""))
        } catch (error) {
          assert.instanceOf(error, ApiError)
        }
      }),
      { numRuns: runs(30_000) }
    )
  })
})
