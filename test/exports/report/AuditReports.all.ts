/** Whole reports through a real Chromium, read back by a reader that shares nothing with it. */
import { createHash } from "node:crypto"
import { type AddressInfo, createServer } from "node:net"
import { homedir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, ManagedRuntime } from "effect"
import { afterAll, assert, describe, it } from "vitest"
import { layerChromium } from "../../../src/adapters/chromium/PdfRendererChromium.ts"
import { emptyFilter } from "../../../src/domain/events/EventFilter.ts"
import { formatMicros, microsOf } from "../../../src/domain/Timestamp.ts"
import { verificationText } from "../../../src/exports/pack/PackText.ts"
import { AuditReports } from "../../../src/exports/report/AuditReports.ts"
import type { CriteriaMapping } from "../../../src/exports/report/Criteria.ts"
import { EVENT_ROWS_MAX, EXCEPTION_ROWS_MAX } from "../../../src/exports/report/EventSurvey.ts"
import { type ReportInput, reportIdOf } from "../../../src/exports/report/Report.ts"
import { defaultReportSettings } from "../../../src/exports/report/ReportSettings.ts"
import { type PdfDocument, PdfRenderer } from "../../../src/ports/PdfRenderer.ts"
import type { BreakReason, VerifyReport } from "../../../src/verify/Verifier.ts"
import { readPdf } from "../../support/PdfReader.ts"
import { inputOf, verificationOf } from "./support/Inputs.ts"
import {
  type EventAt,
  plausible,
  type StoreOptions,
  syntheticStore
} from "./support/SyntheticStore.ts"
import { syntheticTraces, traceScope } from "./support/SyntheticTraces.ts"
import { hostileAt, hostileTexts, scripts } from "./support/Texts.ts"

const runtime = ManagedRuntime.make(
  layerChromium({ path: undefined, cacheFolder: join(homedir(), ".cache", "alk") })
)
afterAll(() => runtime.dispose())

type Options = StoreOptions & { readonly executions?: number }

const bytesOf = (
  options: Options,
  input: ReportInput,
  renderer = runtime,
  settings = defaultReportSettings
) =>
  renderer.runPromise(
    AuditReports.use((reports) => reports.render(input)).pipe(
      Effect.provide(
        AuditReports.layer(settings).pipe(
          Layer.provide([syntheticStore(options), syntheticTraces(options.executions ?? 0)])
        )
      )
    )
  )

const reportOf = async (options: Options, input: ReportInput, pagesLookedInto = 0) => {
  const pdf = await readPdf(await bytesOf(options, input), { pagesLookedInto })
  return { ...pdf, text: pdf.pages.join("\n") }
}

/** A picture of one pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const CHAPTERS = [
  "1 What was asked",
  "2 Population and completeness",
  "3 Integrity and how to re-verify it",
  "4 Mapping to SOC 2 criteria",
  "5 Exceptions and failures",
  "6 Privileged actions",
  "7 Timeliness",
  "8 Statistics",
  "9 Agent executions",
  "10 Samples",
  "11 Event listing",
  "12 Sign-off",
  "13 Glossary and notation"
]

const plain = (text: string) => text.replace(/\s+/g, "")

describe("a report", () => {
  it("of 0 events is a valid document that says so", async () => {
    const options = { size: 0, eventAt: plausible }
    const { outline, pages, text } = await reportOf(options, inputOf(verificationOf(0, plausible)))
    assert.match(
      pages[0]!,
      /found by the service itself No events 0 events lie within these bounds/
    )
    assert.match(pages[0]!, /Population 0 events/)
    assert.deepStrictEqual(
      outline.filter((line) => /^\d/.test(line)),
      CHAPTERS
    )
    assert.match(text, /11 Event listing 0 events\./)
    assert.match(text, /9 Agent executions 0 executions of agents overlap/)
    assert.isAtMost(pages.length, 9)
    assert.notMatch(text, /undefined|NaN|null|\[object/)
  })

  it("of 1 event shows all of it", async () => {
    const options = { size: 1, eventAt: plausible }
    const { pages, text } = await reportOf(options, inputOf(verificationOf(1, plausible)))
    const { content_hash, hash, prev_hash } = plausible(1)
    assert.match(pages[0]!, /Intact 1 event recomputed/)
    for (const value of [content_hash, hash, prev_hash]) assert.include(plain(text), value)
    assert.match(text, /no more than 25 events, so all of them/)
    assert.match(text, /All 1 event shown\./)
    assert.match(text, /Events by outcome .*? success 1 100 %/)
    assert.notMatch(text, /undefined|NaN|null|\[object/)
  })

  it("is tagged, has an outline, embedded fonts, and pages that say which they are", async () => {
    const options = { size: 120, eventAt: plausible }
    const pdf = await reportOf(options, inputOf(verificationOf(120, plausible)), Infinity)
    assert.isTrue(pdf.tagged)
    assert.strictEqual(pdf.language, "en")
    assert.strictEqual(pdf.title, "Audit evidence report: Acme Industries, Entire history")
    assert.deepStrictEqual(pdf.fontsNotEmbedded, [])
    assert.isTrue(
      pdf.fonts.every((name) => /NotoSans/.test(name)),
      pdf.fonts.join()
    )
    for (const role of ["H1", "H2", "Table", "TH", "TD", "Caption", "Figure"]) {
      assert.isAtLeast(pdf.roles.get(role) ?? 0, 1, role)
    }
    assert.isTrue(pdf.alternatives.some((text) => text.startsWith("Events by day and outcome")))
    assert.strictEqual(pdf.pictures, 0)
    pdf.pages.forEach((page, index) => {
      assert.include(page, `Page ${index + 1} of ${pdf.pages.length}`)
      if (index > 0) assert.include(page, "alk, generated 2026-11-21 10:00:01 UTC")
    })
  })

  it("brings the verification that it was made of, as the pack has it", async () => {
    const verification = verificationOf(3, plausible, { erased_events: 1 })
    const input = inputOf(verification)
    const { attachments } = await reportOf({ size: 3, eventAt: plausible }, input)
    const fixed = { ...verification, verified_at: input.generatedAt, duration_ms: 0 }
    assert.deepStrictEqual([...attachments], [["verification.json", verificationText(fixed)]])
  })

  it("bears the name and the logo of the organisation", async () => {
    const settings = {
      ...defaultReportSettings,
      organisation: "Acme <Holding> GmbH",
      logo: { mediaType: "image/png" as const, bytes: Buffer.from(PNG, "base64") }
    }
    const input = inputOf(verificationOf(0, plausible))
    const bytes = await bytesOf({ size: 0, eventAt: plausible }, input, runtime, settings)
    const { pages, pictures } = await readPdf(bytes, { pagesLookedInto: 1 })
    assert.strictEqual(pictures, 1)
    assert.include(pages[0]!, "Acme <Holding> GmbH, alk Audit evidence report")
  })

  it("has a table of contents with the pages on which the chapters start", async () => {
    const options = { size: 120, eventAt: plausible }
    const { pages } = await reportOf(options, inputOf(verificationOf(120, plausible)))
    for (const chapter of CHAPTERS) {
      const [, number] = new RegExp(`${chapter} (\\d+)`).exec(pages[1]!) ?? []
      assert.include(pages[Number(number) - 1]!, chapter)
      // The page before holds it only if it is that of the contents.
      const before = Number(number) - 2
      if (before > 1) assert.notMatch(pages[before]!, new RegExp(`${chapter}(?! \\d)`))
    }
  })

  it("says every outcome, group and criterion with its exact count", async () => {
    const size = 120
    const input = inputOf(verificationOf(size, plausible))
    const { pages, text } = await reportOf({ size, eventAt: plausible }, input)
    const events = Array.from({ length: size }, (_, index) => plausible(index + 1))
    const of = (test: (event: (typeof events)[number]) => boolean) => events.filter(test).length
    const failures = of(({ outcome }) => outcome === "failure")
    assert.include(text, `failure ${failures} `)
    assert.include(
      pages[0]!,
      `${failures + of(({ outcome }) => outcome === "error")} refused or failed`
    )
    assert.include(text, `success ${of(({ outcome }) => outcome === "success")} `)
    assert.include(text, `ann.larsen ${of(({ actor }) => actor.id === "ann.larsen")} `)
    assert.include(text, `user.login ${of(({ action }) => action === "user.login")} `)
    const logins = of(({ action }) => action === "user.login")
    const rotated = of(({ action }) => action === "key.rotate")
    const part = text.slice(text.indexOf("CC6.1 Restricting"), text.indexOf("CC6.2 Registering"))
    assert.match(part, new RegExp(` user\\.login ${logins} newest [\\d,]+ at 2026-`))
    assert.match(part, new RegExp(` key\\.rotate ${rotated} newest [\\d,]+ at 2026-`))
    assert.match(part, new RegExp(` ${logins + rotated} $`))
    assert.match(text, /CC6\.2 Registering .*?none in this population 0 CC6\.3/)
    assert.match(text, /Counted for no criterion: document\.read \(\d+\)\./)
    for (const id of ["CC6.8", "CC7.1", "CC7.5", "CC8.1"]) assert.include(text, `${id} `)
    assert.include(text, "Evidence supporting the examination of the criteria")
    assert.notMatch(text, /complian|certified/i)
    assert.include(text, "120 - 1 + 1 = 120")
    assert.include(text, "No sequence number is missing.")
  })

  it("says what was asked, by whom and of whom, and how to repeat its data", async () => {
    const size = 12
    const filter = { outcome: "success", metadata: [{ path: "ip", value: "it's" }] } as const
    const input = inputOf(verificationOf(size, plausible), {
      filter: emptyFilter,
      request: {
        askedBy: { kind: "share link", id: "shr_17" },
        line: "GET /v1/share/export/pdf",
        serviceUrl: "https://log.example.org/audit",
        apiVersion: "1.0.0"
      }
    })
    const { pages, text } = await reportOf({ size, eventAt: plausible }, input)
    const lines = Array.from({ length: size }, (_, index) => JSON.stringify(plausible(index + 1)))
    const sha256 = createHash("sha256")
      .update(lines.map((line) => `${line}\n`).join(""))
      .digest("hex")
    assert.include(plain(text), `SHA-256${sha256}`)
    assert.include(text, "Asked for with share link shr_17")
    assert.include(text, "Request GET /v1/share/export/pdf")
    assert.include(text, "Service alk at https://log.example.org/audit, API version 1.0.0")
    assert.include(
      plain(text),
      "'https://log.example.org/audit/v1/events?order=asc&to_sequence=12'"
    )
    const { timestamp: first } = plausible(1)
    const { timestamp: last } = plausible(size)
    const period = [first, last].map((time) => time.slice(0, 19).replace("T", " ")).join(" to ")
    assert.include(pages[0]!, `Entire history; events found: ${period} UTC`)
    const id = reportIdOf(input)
    assert.include(pages[0]!, `Report ${id}, asked for with share link shr_17`)
    assert.notStrictEqual(reportIdOf({ ...input, filter }), id)
  })

  it("says how late events were recorded, why others failed and who used privileged rights", async () => {
    const size = 40
    const eventAt: EventAt = (sequence) => {
      const event = plausible(sequence)
      const isOld = sequence <= 3
      return {
        ...event,
        action: sequence % 10 === 0 ? "payment.approve" : sequence === 5 ? "role.grant" : "a.b",
        outcome: sequence % 10 === 0 ? "failure" : "success",
        metadata: sequence % 10 === 0 ? { error: { message: "over the limit" } } : {},
        created_at: isOld
          ? formatMicros(microsOf(event.timestamp) + 9 * 86_400_000_000)
          : event.created_at
      }
    }
    const { pages, text } = await reportOf(
      { size, eventAt },
      inputOf(verificationOf(size, eventAt))
    )
    assert.match(text, /Median 120 ms 95th percentile 9 d Maximum 9 d/)
    assert.match(text, /3 events, within sequences 1 to 3, were recorded more than 1 day after/)
    assert.match(text, /up to 1 second 37 92\.5 % up to 30 days 3 7\.5 %/)
    assert.match(text, /All 3 late events shown/)
    assert.match(text, / 4 failure payment\.approve over the limit 40 at 2026-/)
    assert.match(
      text,
      /6 Privileged actions 1 event with an action .*? role\.grant \S+ 1 0 5 at 2026-/
    )
    assert.match(pages[0]!, /4 failures of payment\.approve: over the limit\. chapter 5/)
    assert.match(pages[0]!, /3 events recorded more than 1 day late\. chapter 7/)
  })

  it("counts the executions of agents and names those that failed and what took longest", async () => {
    const options = { size: 5, eventAt: plausible, executions: 21 }
    const input = inputOf(verificationOf(5, plausible), { traces: traceScope })
    const { pages, text } = await reportOf(options, input)
    assert.match(text, /Executions 21: 15 COMPLETED \(71\.4 %\), 3 FAILED \(14\.3 %\), 3 RUNNING/)
    assert.match(text, /Spans 42: 30 COMPLETED/)
    assert.match(text, /median 10\.0 s, 95th percentile 20\.0 s, maximum 20\.0 s/)
    assert.match(text, /billing-agent 7 33\.3 % 5 1 0 1/)
    assert.match(text, /research-agent exec_000017 18\.0 s timeout of ledger 17\b/)
    assert.match(text, /All 3 failed executions shown/)
    assert.match(text, /19\.0 s TOOL_CALL ledger\.lookup 19 COMPLETED exec_000019/)
    assert.match(pages[0]!, /21 agent executions 3 of them failed/)
    assert.match(pages[0]!, /3 executions of agents failed\. chapter 9/)
  })

  it("lists an event in one line, about 45 to a page, and breaks no address", async () => {
    const size = 300
    const input = inputOf(verificationOf(size, plausible))
    const { pages } = await reportOf({ size, eventAt: plausible }, input)
    const rows = pages.map(
      (page) => [...page.matchAll(/\d 2026-\d\d-\d\d \d\d:\d\d:\d\d (?=\S)/g)].length
    )
    assert.isTrue(
      rows.some((count) => count >= 42 && count <= 52),
      rows.join()
    )
    for (const page of pages.slice(-8)) assert.notMatch(page, /[a-z]@(?!example\.com )/)
  })

  it("of 100,000 events lists the limit and says what it left out, in bounded memory", async () => {
    let bodies = 0
    const size = 100_000
    const options = { size, eventAt: plausible, onBody: () => void (bodies += 1) }
    const { pages, text } = await reportOf(options, inputOf(verificationOf(size, plausible)))
    assert.match(pages[0]!, /Population 100,000 events/)
    assert.match(text, /1,000 events of 100,000 shown; 99,000 left out because this document lists/)
    assert.match(text, /50 events of [\d,]+ shown; [\d,]+ left out here, the older ones/)
    assert.match(text, /Events by week and outcome/)
    const listing = text.slice(text.lastIndexOf("11 Event listing"))
    assert.notMatch(listing, / 99,000 2026-/)
    assert.match(listing, / 99,001 2026-/)
    assert.match(listing, / 100,000 2026-/)
    const read = EVENT_ROWS_MAX + 2 * EXCEPTION_ROWS_MAX + 25 + 2
    // Once each, and what the pages show.
    assert.isAtMost(bodies, size + read + 200)
  })

  it("draws a sample that can be drawn again from what it prints", async () => {
    const size = 400
    const input = inputOf(verificationOf(size, plausible))
    const { text } = await reportOf({ size, eventAt: plausible }, input)
    const sha256 = (value: string) => createHash("sha256").update(value).digest("hex")
    const seed = sha256(`alk-sample-v1\nacme\n${plausible(size).hash}`)
    assert.include(plain(text), seed)
    const positions = new Set<number>()
    for (let n = 1; positions.size < 25; n++) {
      positions.add((Number.parseInt(sha256(`${seed}\n${n}`).slice(0, 13), 16) % size) + 1)
    }
    const titles = text.matchAll(/Position ([\d,]+), sequence ([\d,]+)/g)
    const printed = Array.from(titles, ([, position, sequence]) => {
      assert.strictEqual(position, sequence)
      return Number(position!.replaceAll(",", ""))
    })
    assert.deepStrictEqual(
      printed,
      [...positions].sort((left, right) => left - right)
    )
  })

  it("says a failed verification as loudly as a passed one", async () => {
    const size = 40
    const reasons: ReadonlyArray<BreakReason> = [
      "content_mismatch",
      "hash_mismatch",
      "prev_hash_mismatch",
      "sequence_gap",
      "duplicate_sequence",
      "tail_missing",
      "checkpoint_mismatch"
    ]
    const verification = verificationOf(size, plausible, {
      valid: false,
      status: "broken",
      breaks_total: 9,
      breaks: reasons.map((reason, index) => ({
        sequence_number: 11 + index,
        event_id: `<b>evt-${11 + index}</b>`,
        reason,
        expected: "a".repeat(64),
        actual: "column actor_id = <img src=x>"
      }))
    })
    const input = inputOf(verification, { tenant: { id: "acme" } })
    const { pages, text } = await reportOf({ size, eventAt: plausible }, input)
    assert.match(pages[0]!, /Integrity failure 9 breaks found in 40 events checked/)
    assert.match(pages[0]!, /Sequence 11: content_mismatch\. The stored content/)
    assert.match(pages[0]!, /and 6 more breaks, see chapter 3/)
    for (const page of pages.slice(1)) {
      assert.include(page, "Audit evidence report: Integrity failure")
    }
    reasons.forEach((reason, index) => {
      assert.match(text, new RegExp(`${11 + index} ${reason} .*? event <b>evt-${11 + index}</b>`))
    })
    assert.include(plain(text), `expected${"a".repeat(64)}foundcolumnactor_id=<imgsrc=x>`)
    assert.match(text, /7 breaks of 9 shown; 2 left out/)
    assert.match(text, /5 Exceptions and failures Computed from altered records\./)
    assert.notMatch(text, /Intact|No breaks were found|No sequence number is missing/)
  })

  it("shows a second chain, of agent executions, and is no calmer if that one is broken", async () => {
    const found = { event_id: null, expected: "a", actual: "b" }
    const traces = {
      ...verificationOf(44, plausible),
      scheme: "alk-trace-v1",
      status: "broken",
      valid: false,
      breaks: [{ ...found, sequence_number: 7, reason: "content_mismatch" }],
      breaks_total: 1
    }
    const ofBoth = (both: object) => verificationOf(12, plausible, both as Partial<VerifyReport>)
    const options = { size: 12, eventAt: plausible, executions: 5 }
    const input = inputOf(ofBoth({ valid: false, traces }), { traces: traceScope })
    const { pages, text } = await reportOf(options, input)
    assert.match(
      pages[0]!,
      /Integrity failure The chain of agent executions does not hold\. 1 break/
    )
    assert.match(
      text,
      /The chain of agent executions Verdict Integrity failure\. 1 break found in 44 facts/
    )
    assert.match(text, /Breaks 1 Breaks of the chain, 1 break in all .*? 7 content_mismatch/)
    assert.match(text, /9 Agent executions Computed from altered records\./)
    assert.match(text, /No sequence number is missing/)
    assert.notMatch(text, /8 Statistics Computed from altered/)
    const intact = { ...traces, status: "valid", valid: true, breaks: [], breaks_total: 0 }
    const calm = await reportOf(options, inputOf(ofBoth({ traces: intact })))
    assert.match(calm.pages[0]!, /itself Intact 12 events recomputed/)
    assert.match(calm.text, /Verdict Intact\. 44 facts recomputed .*? Scheme alk-trace-v1/)
  })

  it("says what the service does not establish, of both chains, on the first page too", async () => {
    const notices = ["alk.state was lost <b>then</b>"]
    const traces = { ...verificationOf(3, plausible), notices: ["the facts too", "and", "more"] }
    const verification = verificationOf(12, plausible, { notices, traces } as object)
    const { pages, text } = await reportOf({ size: 12, eventAt: plausible }, inputOf(verification))
    assert.match(pages[0]!, /Intact 12 events .* 1 notice of the service: see what is not/)
    assert.match(pages[0]!, /Not established, of the events: alk\.state was lost <b>then<\/b>\./)
    assert.match(pages[0]!, /Not established, of the facts: the facts too\. .* and 2 more notices/)
    assert.match(
      text,
      /What this does not establish The service itself says .*? of the facts: more/
    )
  })

  it("says that a check was not finished, and never that it passed", async () => {
    const verification = verificationOf(5, plausible, { valid: false, status: "incomplete" })
    const { pages, text } = await reportOf({ size: 5, eventAt: plausible }, inputOf(verification))
    assert.match(pages[0]!, /found by the service itself Incomplete 5 events checked, but/)
    assert.notInclude(text, "Intact")
  })

  it("says that the counts differ when the store counts other events than the check", async () => {
    const verification = verificationOf(30, plausible, { events_in_bounds: 31 })
    const { text } = await reportOf({ size: 30, eventAt: plausible }, inputOf(verification))
    assert.match(text, /The counts differ\. .* 30 events, the check of the chain 31/)
    assert.notInclude(text, "No sequence number is missing")
  })

  it("of a broken chain says no calm sentence about completeness and marks forged rows", async () => {
    const size = 29
    const broken = { event_id: null, expected: "a", actual: "b" }
    const verification = verificationOf(size, plausible, {
      valid: false,
      status: "broken",
      head: {
        sequence_number: 30,
        hash: plausible(30).hash,
        created_at: plausible(30).created_at
      },
      breaks: [
        { ...broken, sequence_number: 17, reason: "content_mismatch" },
        { ...broken, sequence_number: 30, reason: "tail_missing" }
      ],
      breaks_total: 2
    })
    const { text } = await reportOf({ size, eventAt: plausible }, inputOf(verification))
    assert.match(text, /Events expected 30 - 1 \+ 1 = 30 Events read by the check 29 /)
    assert.match(text, /Difference 1 event missing/)
    assert.match(text, /Completeness is not established: the chain has 2 breaks/)
    assert.notMatch(text, /counts agree|No sequence number is missing/)
    assert.match(text, /8 Statistics Computed from altered records\./)
    assert.match(text, /of them failed These numbers are computed from altered records/)
    assert.match(text, /The data behind this report Computed from altered records\./)
    const listing = text.slice(text.lastIndexOf("Event listing"))
    assert.match(listing, / 17 2026-(?:(?! 18 2026-).)* broken /)
    assert.strictEqual(listing.split(/ broken (?=18 2026-)/).length, 2)
    assert.notMatch(listing, / 18 2026-(?:(?! 19 2026-).)* broken /)
    assert.match(text, /sequence 17 (?:Event|Integrity) (?:broken|.*?broken), see chapter 3/)
  })

  it("names its bounds and filter, and counts only what lies within", async () => {
    const size = 300
    const from = plausible(100).timestamp
    const verification = verificationOf(size, plausible, {
      bounds: { from, to: plausible(250).timestamp, from_sequence: null, to_sequence: null },
      events_checked: 151,
      events_in_bounds: 151,
      first_sequence_number: 100,
      last_sequence_number: 250
    })
    const metadata = [{ path: "note.<b>", value: "\u202Ex" }]
    const filter = { outcome: "failure", actionPrefix: "document.", metadata: [] } as const
    const input = inputOf(verification, { filter })
    const { pages, text } = await reportOf({ size, eventAt: plausible }, input)
    const matching = Array.from({ length: 151 }, (_, index) => plausible(100 + index)).filter(
      ({ action, outcome }) => outcome === "failure" && action.startsWith("document.")
    ).length
    assert.isAbove(matching, 0)
    assert.include(pages[0]!, `${matching} event`)
    assert.include(pages[0]!, `${from.slice(0, 10)} ${from.slice(11, 19)} to `)
    assert.include(text, from)
    assert.match(text, /action document\.\* outcome failure|outcome failure .*action document\.\*/)
    assert.match(text, /Events expected 250 - 100 \+ 1 = 151 /)
    assert.include(text, "Of those read, within the period 151 ")
    assert.include(text, `Counted by the query ${matching} within the period and the filter`)
    const none = await reportOf(
      { size, eventAt: plausible },
      inputOf(verification, { filter: { metadata } })
    )
    // As a parameter of the API is written: signs of comparison in a key are escaped.
    assert.include(none.text, "metadata.note.\\<b\\> U+202E x")
    assert.match(none.pages[0]!, /the filter of chapter 1 applied; events found: no events/)
    assert.match(none.pages[0]!, /Intact/)
  })

  it("shows other scripts with embedded glyphs, and the others by code point", async () => {
    const input = inputOf(verificationOf(40, scripts, { erased_events: 3 }))
    const options = { size: 40, eventAt: scripts }
    const { fonts, fontsNotEmbedded, text } = await reportOf(options, input, Infinity)
    assert.isTrue(
      fonts.some((font) => font.includes("GowunDodum")),
      "Hangul"
    )
    for (const name of ["Arabic", "Hebrew", "Thai", "SC", "Mono"]) {
      assert.isTrue(
        fonts.some((font) => font.includes(`NotoSans${name}`)),
        name
      )
    }
    assert.deepStrictEqual(fontsNotEmbedded, [])
    for (const sample of [
      "季度报告",
      "四半期報告書",
      "カタカナ",
      "Ελληνικά",
      "Жёлтый",
      "Łódź",
      "Việt",
      "한국어"
    ]) {
      assert.include(text, sample)
    }
    assert.match(text, /[\u0600-\u06ff]{3}/)
    assert.match(text, /[\u0590-\u05ff]{3}/)
    assert.include(text, "U+1F600")
    assert.match(text, /Details erased 2026-06-01 12:00:00 UTC/)
    assert.match(text, /Erasures 2 recorded\./)
    assert.match(text, /Erased events 3/)
  })

  it("shows hostile text literally and asks for nothing", async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.destroy()
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const eventAt = hostileAt(base)
    const input = inputOf(verificationOf(25, eventAt), {
      tenant: { id: "acme", name: `</title><script src="${base}t"></script>` },
      serviceName: `"; } </style><img src="${base}s">`
    })
    const pdf = await reportOf({ size: 25, eventAt }, input)
    server.close()
    assert.strictEqual(connections, 0)
    assert.deepStrictEqual(pdf.outsideLinks, [])
    assert.strictEqual(pdf.title, `Audit evidence report: ${input.tenant.name}, Entire history`)
    const seen = plain(pdf.text)
    assert.include(seen, plain(input.tenant.name!))
    assert.include(seen, plain(`${input.serviceName}, generated`))
    for (const text of hostileTexts(base)) {
      const start = plain(text.slice(0, 150).replace(/[^\x20-\x7e].*$/su, ""))
      assert.include(seen, start)
    }
    const unseen =
      "202E 202C 2066 200F 200B 200D FEFF 00AD 2060 E0041 000A 000D 0009 0007 001B 2028"
    for (const point of unseen.split(" ")) assert.include(pdf.text, `U+${point}`)
    assert.match(pdf.text, /… 90 more characters/)
  })

  it("is the same, byte for byte, for the same content and generation time", async () => {
    const options = { size: 30, eventAt: scripts }
    const input = inputOf(verificationOf(30, scripts))
    const anotherRun = { verified_at: "2030-01-01T00:00:00.000000Z", duration_ms: 99 }
    const again = inputOf(verificationOf(30, scripts, anotherRun))
    const elsewhere = ManagedRuntime.make(
      layerChromium({ path: undefined, cacheFolder: join(homedir(), ".cache", "alk") })
    )
    const first = await bytesOf(options, input)
    const second = await bytesOf(options, again, elsewhere)
    await elsewhere.dispose()
    assert.isTrue(Buffer.from(first).equals(second))
    const later = await bytesOf(options, { ...input, generatedAt: "2026-11-21T10:00:02.000000Z" })
    assert.isFalse(Buffer.from(first).equals(later))
  })
})

describe("the document of a report", () => {
  const documents: Array<PdfDocument> = []
  const recording = ManagedRuntime.make(
    Layer.succeed(PdfRenderer, {
      render: (document) =>
        Effect.sync(() => {
          documents.push(document)
          return new Uint8Array()
        })
    })
  )

  it("stays small whatever is stored in an event", async () => {
    const long = (sequence: number) => {
      const event = plausible(sequence)
      return {
        ...event,
        action: `a.${"b".repeat(126)}`,
        actor: { ...event.actor, id: "\u0007".repeat(256), email: "e".repeat(320) },
        resource: { id: "i".repeat(256), type: "t".repeat(256), name: "\u202e".repeat(1_024) },
        metadata: { long: "\u0001".repeat(4_000) }
      }
    }
    const size = 1_200
    await bytesOf({ size, eventAt: long }, inputOf(verificationOf(size, long)), recording)
    const { body, styles } = documents.at(-1)!
    assert.isBelow(body.length + styles.length, 40 * 1_048_576)
    assert.match(body, /more characters/)
  })

  it("takes another mapping of criteria", async () => {
    const mapping: CriteriaMapping = {
      criteria: [
        {
          id: "CC9.2",
          topic: "<own>",
          evidence: "what",
          elsewhere: "where",
          rules: [{ actions: ["user.login"] }]
        }
      ],
      privileged_actions: ["config.**"]
    }
    const input = inputOf(verificationOf(60, plausible))
    const settings = { ...defaultReportSettings, mapping }
    await bytesOf({ size: 60, eventAt: plausible }, input, recording, settings)
    const { body } = documents.at(-1)!
    assert.include(body, "CC9.2")
    assert.include(body, "&#60;own&#62;")
    assert.notInclude(body, "CC6.1")
  })

  it("embeds the faces that its text needs and no others", async () => {
    await bytesOf({ size: 9, eventAt: plausible }, inputOf(verificationOf(9, plausible)), recording)
    const latin = documents.at(-1)!.styles
    assert.notMatch(latin, /@font-face\{font-family:"Noto Sans (?:Arabic|Hebrew|SC)"/)
    assert.isBelow(latin.length, 300_000)
    await bytesOf({ size: 9, eventAt: scripts }, inputOf(verificationOf(9, scripts)), recording)
    assert.match(documents.at(-1)!.styles, /@font-face\{font-family:"Noto Sans Hebrew"/)
  })
})
