/**
 * Stored JSON cut into columns: what is cut comes together again byte for byte, and what the columns
 * could not give back is not cut.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  cutEvent,
  EventOffsets,
  type Micros
} from "../../../../src/adapters/clickhouse/events/EventSplit.ts"
import { parseJson } from "../../../../src/domain/json/Json.ts"
import { Chain, erasedForm, type Fields } from "../../../verify/support/Chains.ts"
import { anyEvents } from "../support/Generators.ts"

/** What the columns give back, as EventText.ts puts it together. */
const together = (bytes: Buffer, cut: EventOffsets): string => {
  const plain = (from: number, end: number) =>
    `"${(parseJson(`"${bytes.toString("utf8", from, end)}"`) as string)
      .replaceAll("\\", "\\\\")
      .replaceAll('"', '\\"')}"`
  const text = (name: string, from: number, end: number) =>
    from === end ? "" : `,"${name}":${bytes.toString("utf8", from, end)}`
  const time = (micros: Micros) => {
    const exact = BigInt(micros)
    const millis = exact / 1000n - (exact < 0n && exact % 1000n !== 0n ? 1n : 0n)
    const rest = String(exact - millis * 1000n).padStart(3, "0")
    return `"${new Date(Number(millis)).toISOString().slice(0, -1)}${rest}Z"`
  }
  const digits = (from: number, length: number) =>
    `"${bytes.toString("latin1", from, from + length)}"`
  const optional = (name: string, from: number | undefined, length: number) =>
    from === undefined ? "" : `,"${name}":${digits(from, length)}`
  return (
    `{"id":${plain(cut.idFrom, cut.idEnd)},"timestamp":${time(cut.timestamp)}`
    + `,"actor":{"id":${plain(cut.actor.idFrom, cut.actor.idEnd)}`
    + `,"type":${plain(cut.actor.typeFrom, cut.actor.typeEnd)}`
    + `${text("email", cut.actor.textFrom, cut.actor.textEnd)}}`
    + `,"action":${plain(cut.actionFrom, cut.actionEnd)}`
    + `,"resource":{"id":${plain(cut.resource.idFrom, cut.resource.idEnd)}`
    + `,"type":${plain(cut.resource.typeFrom, cut.resource.typeEnd)}`
    + `${text("name", cut.resource.textFrom, cut.resource.textEnd)}}`
    + `,"outcome":${plain(cut.outcomeFrom, cut.outcomeEnd)}`
    + text("metadata", cut.metadataFrom, cut.metadataEnd)
    + `,"tenant_id":${plain(cut.tenantFrom, cut.tenantEnd)}`
    + `,"sequence_number":${cut.sequenceNumber},"created_at":${time(cut.createdAt)}`
    + `,"prev_hash":${digits(cut.prevHash, 64)}`
    + optional("details_salt", cut.salt, 32)
    + optional("details_hash", cut.detailsHash, 64)
    + `,"content_hash":${digits(cut.contentHash, 64)},"hash":${digits(cut.hash, 64)}`
    + `${cut.erasedAt === 0 ? "" : `,"erased_at":${time(cut.erasedAt)}`}}`
  )
}

const cutOf = (body: string): EventOffsets | undefined => {
  const cut = new EventOffsets()
  return cutEvent(Buffer.from(body), cut) ? cut : undefined
}

/** Every string in a metadata value, keys aside. */
const stringsOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : value !== null && typeof value === "object"
      ? Object.values(value).flatMap(stringsOf)
      : []

const whole = new Chain("acme").append({
  actor: { id: 'a"\\', type: "human", email: "a@b" },
  resource: { id: "r", type: "t", name: "\n\u0001" },
  metadata: { text: ['"', "\\", { deep: "x:" }], n: [1e21, -0.5, true, null] }
})

describe("an event cut into columns", () => {
  it("comes together again byte for byte", () => {
    fc.assert(
      fc.property(anyEvents, (samples) => {
        const chain = new Chain("acme").extend(samples.length, (n) => samples[n - 1] as Fields)
        for (const body of chain.bodies) {
          const cut = cutOf(body)
          if (cut === undefined) assert.fail(body)
          assert.strictEqual(together(Buffer.from(body), cut), body)
        }
      }),
      { numRuns: 10 }
    )
  })

  it("notes the strings of its metadata, and no keys", () => {
    const bytes = Buffer.from(whole)
    const cut = cutOf(whole)!
    const strings = Array.from({ length: cut.strings.length / 2 }, (_, index) =>
      parseJson(`"${bytes.toString("utf8", cut.strings[2 * index], cut.strings[2 * index + 1])}"`)
    )
    const { metadata } = parseJson(whole) as { readonly metadata: object }
    assert.sameOrderedMembers(strings as Array<string>, [...stringsOf(metadata)])
  })

  it("comes together again once its details are gone", () => {
    for (const erasedAt of ["2026-11-22T08:00:00.000000Z", "2261-12-31T23:59:59.999999Z"]) {
      const body = erasedForm(whole, erasedAt)
      assert.strictEqual(together(Buffer.from(body), cutOf(body)!), body)
    }
  })

  it("keeps times between 1900 and 2261 to the microsecond, and cuts no others", () => {
    for (const timestamp of [
      "1900-01-01T00:00:00.000000Z",
      "1969-12-31T23:59:59.999999Z",
      "2000-02-29T12:30:59.123456Z",
      "2255-06-05T23:47:34.740992Z",
      "2261-12-31T23:59:59.999999Z"
    ]) {
      const body = new Chain("acme").append({ timestamp })
      assert.strictEqual(together(Buffer.from(body), cutOf(body)!), body)
    }
    for (const timestamp of [
      "1899-12-31T23:59:59.999999Z",
      "2262-01-01T00:00:00.000000Z",
      "2025-02-29T00:00:00.000000Z",
      "2025-13-01T00:00:00.000000Z",
      "2025-12-00T00:00:00.000000Z",
      "2025-12-01T24:00:00.000000Z",
      "2025-12-01T00:60:00.000000Z",
      "2025-12-01 00:00:00.000000Z",
      "2025-12-01T00:00:00.00000xZ"
    ]) {
      assert.isUndefined(cutOf(new Chain("acme").append({ timestamp })), timestamp)
    }
  })

  it("is not cut where its columns would give back other bytes", () => {
    const changes: ReadonlyArray<(body: string) => string> = [
      (body) => ` ${body}`,
      (body) => `${body} `,
      (body) => body.slice(0, -1),
      (body) => body.replace('"outcome"', '"note":1,"outcome"'),
      (body) => body.replace('"id":', '"id": '),
      (body) => body.replace('"type":"human"', '"type":"hum\\u0061n"'),
      (body) => body.replace('"type":"human"', '"type":"hum\\/an"'),
      (body) => body.replace('"type":"human"', '"type":"hum\tan"'),
      (body) => body.replace('"email":"a@b"', '"email":"\\ud83d\\ude00"'),
      (body) => body.replace('"email":"a@b"', '"email":null'),
      (body) => body.replace('"email":"a@b"', '"email":"\\q"'),
      (body) => body.replace('"email":"a@b"', '"email":"\\u00zz"'),
      (body) => body.replace('"email":"a@b"', '"email":"\\/"'),
      (body) => body.replace('"metadata":{', '"metadata":[{').replace('},"tenant', '}],"tenant'),
      (body) => body.replace('"sequence_number":1', '"sequence_number":01'),
      (body) => body.replace('"sequence_number":1', '"sequence_number":1e0'),
      (body) => body.replace('"sequence_number":1', '"sequence_number":1000000000000000'),
      (body) => body.replace(/"hash":"[0-9a-f]/, '"hash":"A'),
      (body) => body.replace(/("details_salt":")[0-9a-f]{32}/, `$1${"0".repeat(32)}`),
      (body) => body.replace(/("details_hash":")[0-9a-f]{64}/, `$1${"0".repeat(64)}`),
      (body) => body.replace(/"content_hash":"[0-9a-f]{64}",/, ""),
      (body) => erasedForm(body, "1970-01-01T00:00:00.000000Z"),
      (body) => body.replace(/}$/, ',"erased_at":"2026-11-22T08:00:00.000000Z"}')
    ]
    assert.isDefined(cutOf(whole))
    for (const change of changes) {
      const changed = change(whole)
      assert.notStrictEqual(changed, whole)
      assert.isUndefined(cutOf(changed), changed)
    }
  })

  it("is not cut at any place where its bytes end", () => {
    for (let end = 0; end < whole.length; end++) assert.isUndefined(cutOf(whole.slice(0, end)))
  })
})
