/** The parts of `alk ingest`: how a file is cut, mapped and remembered. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as fc from "fast-check"
import { afterAll, assert, describe, it } from "vitest"
import { cellsOf, eventsOfCsv } from "../../src/cli/ingest/Csv.ts"
import { idAt, jsonToObject, toEntry } from "../../src/cli/ingest/Entries.ts"
import { Journal, journalFile, newState, readJournal } from "../../src/cli/ingest/Journal.ts"
import { type Format, type Place, type Unit, UnitReader } from "../../src/cli/ingest/Units.ts"

/** The units of a text that comes in chunks of some bytes, from a place on. */
const unitsOf = (text: string, format: Format, chunk = 7, place?: Place): ReadonlyArray<Unit> => {
  const bytes = Buffer.from(text)
  const reader = new UnitReader(format, place)
  const units: Array<Unit> = []
  for (let at = place?.offset ?? 0; at < bytes.length; at += chunk) {
    units.push(...reader.read(bytes.subarray(at, at + chunk)))
  }
  return [...units, ...reader.end()]
}

const FILES: Readonly<Record<Format, string>> = {
  ndjson: '\ufeff{"a":1}\n\n{"ä":"\\n"}\r\n{"c":3}',
  json: ' [\n{"a":"]},"},\n\n {"b":[1,{"c":"\\""}]} , 3\n]\n',
  csv: 'a,b\n1,"two\nlines"\n"x ""y""",é\n'
}
const UNITS: Readonly<Record<Format, ReadonlyArray<readonly [line: number, text: string]>>> = {
  ndjson: [
    [1, '{"a":1}'],
    [3, '{"ä":"\\n"}'],
    [4, '{"c":3}']
  ],
  json: [
    [2, '{"a":"]},"}'],
    [4, '{"b":[1,{"c":"\\""}]}'],
    [4, "3"]
  ],
  csv: [
    [1, "a,b"],
    [2, '1,"two\nlines"'],
    [4, '"x ""y""",é']
  ]
}

describe("the units of a file", () => {
  for (const format of ["ndjson", "json", "csv"] as const) {
    it(`are the same however its bytes come (${format})`, () => {
      for (let chunk = 1; chunk < 60; chunk++) {
        const units = unitsOf(FILES[format], format, chunk)
        assert.deepStrictEqual(
          units.map(({ line, text }) => [line, text] as const),
          UNITS[format]
        )
      }
    })

    it(`are the rest of them when reading goes on after any of them (${format})`, () => {
      const all = unitsOf(FILES[format], format)
      for (const [at, { end }] of all.entries()) {
        const rest = unitsOf(FILES[format], format, 5, end)
        assert.deepStrictEqual(rest, all.slice(at + 1))
      }
    })
  }

  it("say which of them are no text", () => {
    const bytes = Buffer.from('{"a":"é"}\n{"a":"\xe9"}\n', "latin1")
    const units = [...new UnitReader("ndjson").read(Buffer.concat([Buffer.from("{}\n"), bytes]))]
    assert.deepStrictEqual(
      units.map(({ isUtf8 }) => isUtf8),
      [true, false, false]
    )
    assert.deepInclude(toEntry(units[1]!, "f00d", jsonToObject), { code: "unreadable" })
  })

  it("of an array that is none, or of an endless line, are refused with the fix", () => {
    assert.throws(() => unitsOf('{"a":1}', "json"), /no JSON array/)
    assert.throws(() => unitsOf("x".repeat(5_000_000), "ndjson", 1_000_000), /line 1: .*4 MiB/)
  })
})

describe("CSV", () => {
  it("reads back whatever cells were written", () => {
    const quoted = (cell: string) => `"${cell.replaceAll('"', '""')}"`
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1 }), (cells) => {
        assert.deepStrictEqual(cellsOf(cells.map(quoted).join(",")), cells)
      })
    )
    assert.deepStrictEqual(cellsOf('a,"b,c",,"d ""e"""'), ["a", "b,c", "", 'd "e"'])
    assert.throws(() => cellsOf('"a'), /not closed/)
    assert.throws(() => cellsOf('"a"b'), /after a closing quote/)
  })

  it("takes fields by name and mapping, constants, and the rest as metadata", () => {
    const toEvent = eventsOfCsv(["user", "action", "extra", "metadata.n"], {
      columns: { actor_id: "user" },
      values: { actor_type: "human" }
    })
    assert.deepStrictEqual(toEvent("ada,a.b,x,1"), {
      actor: { type: "human", id: "ada" },
      action: "a.b",
      metadata: { extra: "x", n: "1" }
    })
    assert.deepStrictEqual(toEvent("ada,a.b,,"), {
      actor: { type: "human", id: "ada" },
      action: "a.b"
    })
    assert.throws(() => toEvent("ada,a.b"), /2 cells where the header has 4/)
  })

  it("refuses a mapping that the file or the service does not have", () => {
    const none = { columns: {}, values: {} }
    const of = (more: object) => () => eventsOfCsv(["a"], { ...none, ...more })
    assert.throws(of({ columns: { actor_id: "b" } }), /there is no column b; there are a/)
    assert.throws(of({ columns: { actor: "a" } }), /--map: actor is no field; .*actor_id/)
    assert.throws(of({ values: { who: "a" } }), /--set: who is no field/)
  })
})

describe("what is sent of a line", () => {
  const end = { offset: 9, lines: 3 }
  const unit = (text: string): Unit => ({ text, line: 3, end, isUtf8: true })
  const entry = (text: string) => toEntry(unit(text), "f00d", jsonToObject)

  it("is its own text with the id of its place, so that numbers stay as they were written", () => {
    const id = idAt("f00d", 9)
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.deepInclude(entry('{"n":1.0, "m":12345678901234567890}'), {
      body: `{"id":"${id}","n":1.0, "m":12345678901234567890}`
    })
    assert.deepInclude(entry("{ }"), { body: `{"id":"${id}" }` })
    assert.notStrictEqual(idAt("f00d", 10), id)
    assert.notStrictEqual(idAt("beef", 9), id)
  })

  it("has another id for each of several on one line", () => {
    const entries = unitsOf("[{},{}, {}]", "json").map((one) => toEntry(one, "f00d", jsonToObject))
    assert.strictEqual(new Set(entries.map((one) => "body" in one && one.body)).size, 3)
  })

  it("keeps an id of its own, and is refused where there is nothing to send", () => {
    assert.deepInclude(entry('{"id":"mine"}'), { body: '{"id":"mine"}' })
    assert.deepInclude(entry('{"a":'), { code: "unreadable" })
    assert.deepInclude(entry("[1]"), { code: "not_an_object" })
    assert.deepInclude(entry('{"id":null}'), { code: "invalid_id" })
  })
})

describe("the journal", () => {
  const folder = mkdtempSync(join(tmpdir(), "alk-journal-"))
  afterAll(() => rmSync(folder, { recursive: true }))
  const reject = { line: 2, code: "x", message: "y", text: "z" }

  it("says how far it was, and lists what was refused once, whatever was written after it", () => {
    const file = join(folder, "a.ndjson")
    const rejects = `${file}.rejects`
    const first = new Journal(
      file,
      rejects,
      newState({ identity: "f00d", size: 100, format: "ndjson", target: "t" })
    )
    first.settle({ offset: 10, lines: 2 }, 1, [reject])
    first.save()
    // A crash between these two: the rejected line is on the disk, and not counted.
    writeFileSync(rejects, `${readFileSync(rejects, "utf8")}{"line":3}\n`)
    const state = readJournal(file)!
    assert.deepInclude(state, { offset: 10, lines: 2, stored: 1, rejected: 1, identity: "f00d" })
    const second = new Journal(file, rejects, state)
    second.settle({ offset: 20, lines: 4 }, 0, [{ ...reject, line: 4 }])
    second.save()
    const lines = readFileSync(rejects, "utf8").trim().split("\n")
    assert.deepStrictEqual(
      lines.map((line) => JSON.parse(line).line),
      [2, 4]
    )
    assert.deepInclude(readJournal(file)!, { offset: 20, rejected: 2 })
  })

  it("that can't be read is not taken for a beginning", () => {
    const file = join(folder, "b.ndjson")
    assert.isUndefined(readJournal(file))
    writeFileSync(journalFile(file), "{")
    assert.throws(() => readJournal(file), /can't be read/)
  })
})
