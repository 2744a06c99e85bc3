/**
 * ZIPs that programs could read in more than one way: no verifier gives a verdict on any of them,
 * and all of them refuse the same ones.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { TestChain } from "./support/Chains.ts"
import { PackEditor } from "./support/PackEditor.ts"
import { PackWorld, signer } from "./support/PackWorld.ts"
import { type RawEntry, rawZip } from "./support/RawZip.ts"
import { Verifiers } from "./support/Verifiers.ts"

const EVENTS = "events.ndjson"
const JUNK = Buffer.from("bytes of something else")

let verifiers: Verifiers
let original: Buffer
let entries: ReadonlyArray<RawEntry>

beforeAll(async () => {
  verifiers = await Verifiers.open()
  original = await new PackWorld(new TestChain("acme", 12)).pack()
  entries = [...new PackEditor(original).files].map(([name, content]) => ({ name, content }))
})
afterAll(() => verifiers.close())

/** The entries with something changed at the events. */
const atEvents = (change: Partial<RawEntry>): ReadonlyArray<RawEntry> =>
  entries.map((entry) => (entry.name === EVENTS ? { ...entry, ...change } : entry))

const forged = (): RawEntry => ({ name: EVENTS, content: Buffer.from("{}\n") })

/** An extra field that gives the entry another name. */
const otherName = (): Buffer => {
  const name = Buffer.from("other.ndjson")
  const field = Buffer.alloc(9 + name.length)
  field.writeUInt16LE(0x7075, 0)
  field.writeUInt16LE(5 + name.length, 2)
  field.writeUInt8(1, 4)
  name.copy(field, 9)
  return field
}

/** An extra field with the time of change, as Info-ZIP writes it. */
const changeTime = Buffer.from([0x55, 0x54, 5, 0, 1, 0, 0, 0, 0])

const NAMED = { flags: 0x0808 }

const unsafeNames = [
  "../events.ndjson",
  "/events.ndjson",
  "a//b",
  "a\\b",
  "a\u0000b",
  "C:x",
  "é.txt",
  "events.ndjson."
]

const ambiguous: ReadonlyArray<readonly [string, () => Buffer]> = [
  ["bytes before the first entry", () => Buffer.concat([JUNK, original])],
  [
    "bytes before the first entry, with places that fit",
    () => rawZip({ entries: entries.map((one, at) => (at === 0 ? { ...one, before: JUNK } : one)) })
  ],
  ["bytes between two entries", () => rawZip({ entries: atEvents({ before: JUNK }) })],
  ["bytes before the directory", () => rawZip({ entries, beforeDirectory: JUNK })],
  ["bytes after the directory", () => rawZip({ entries, afterDirectory: JUNK })],
  ["a comment", () => rawZip({ entries, comment: "a comment" })],
  ["bytes after the end", () => Buffer.concat([original, JUNK])],
  ["a second ZIP after the end", () => Buffer.concat([original, rawZip({ entries: [forged()] })])],
  [
    "an entry that the directory does not name",
    () => rawZip({ entries: [{ ...forged(), isHidden: true }, ...entries] })
  ],
  [
    "another name in the local header",
    () => rawZip({ entries: atEvents({ local: { name: "EVENTS.ndjson" } }) })
  ],
  [
    "another checksum in the local header",
    () => rawZip({ entries: atEvents({ local: { crc: 1 } }) })
  ],
  [
    "another size in the local header",
    () => rawZip({ entries: atEvents({ local: { bytes: 7 } }) })
  ],
  [
    "another compressed size in the local header",
    () => rawZip({ entries: atEvents({ local: { packedBytes: 7 } }) })
  ],
  [
    "another method in the local header",
    () => rawZip({ entries: atEvents({ local: { method: 0 } }) })
  ],
  ["other flags in the local header", () => rawZip({ entries: atEvents({ local: { flags: 0 } }) })],
  [
    "another checksum after the data",
    () =>
      rawZip({
        entries: atEvents({ isStreamed: true, central: NAMED, descriptor: { crc: 5 } })
      })
  ],
  [
    "another size after the data",
    () =>
      rawZip({
        entries: atEvents({ isStreamed: true, central: NAMED, descriptor: { packedBytes: 5 } })
      })
  ],
  ["bytes after the compressed data", () => rawZip({ entries: atEvents({ padding: JUNK }) })],
  ["a name twice", () => rawZip({ entries: [...entries, forged()] })],
  [
    "a name twice, in capitals once",
    () => rawZip({ entries: [...entries, { ...forged(), name: "EVENTS.NDJSON" }] })
  ],
  [
    "another name in an extra field",
    () => rawZip({ entries: atEvents({ central: { extra: otherName() } }) })
  ],
  [
    "another name in an extra field of the local header",
    () => rawZip({ entries: atEvents({ local: { extra: otherName() } }) })
  ],
  [
    "an extra field that is cut off",
    () => rawZip({ entries: atEvents({ central: { extra: Buffer.from([1, 2, 9, 0]) } }) })
  ],
  [
    "encryption",
    () => rawZip({ entries: atEvents({ local: { flags: 0x0801 }, central: { flags: 0x0801 } }) })
  ],
  [
    "a link in place of a file",
    () => rawZip({ entries: atEvents({ central: { attributes: 0o120777 * 0x10000 } }) })
  ],
  ["a comment of an entry", () => rawZip({ entries: atEvents({ central: { comment: "x" } }) })],
  ["fewer entries than it says", () => rawZip({ entries, count: entries.length + 1 })],
  ["more entries than it says", () => rawZip({ entries, count: entries.length - 1 })],
  [
    "a method that is none",
    () => rawZip({ entries: atEvents({ local: { method: 12 }, central: { method: 12 } }) })
  ],
  ...unsafeNames.map((name): readonly [string, () => Buffer] => [
    `an unsafe name: ${JSON.stringify(name)}`,
    () => rawZip({ entries: [...entries, { name, content: JUNK }] })
  ])
]

describe("a ZIP with one reading", () => {
  it("is what the service writes", async () => {
    assert.strictEqual((await verifiers.check(original, { key: signer.vkey })).verdict, "authentic")
  })

  const plain: ReadonlyArray<readonly [string, () => Buffer]> = [
    ["of other tools", () => rawZip({ entries })],
    [
      "that was streamed",
      () => rawZip({ entries: entries.map((one) => ({ ...one, isStreamed: true })) })
    ],
    [
      "with the times of files",
      () => {
        const said = { extra: changeTime }
        return rawZip({ entries: atEvents({ local: said, central: said }) })
      }
    ]
  ]
  for (const [name, make] of plain) {
    it(`is read: ${name}`, async () => {
      const { verdict } = await verifiers.check(make(), { key: signer.vkey })
      assert.strictEqual(verdict, "authentic")
    })
  }
})

describe("a ZIP with more than one reading is unreadable", () => {
  for (const [name, make] of ambiguous) {
    it(`for every verifier: ${name}`, async () => {
      const { verdict } = await verifiers.check(make(), { key: signer.vkey })
      assert.strictEqual(verdict, "unreadable")
    })
  }
})
