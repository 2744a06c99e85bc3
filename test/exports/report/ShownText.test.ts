/** Foreign text on a page: nothing invisible, nothing lost without a word, nothing interpreted. */
import { it as effectIt } from "@effect/vitest"
import { Schema } from "effect"
import { assert, describe, it } from "vitest"
import { duration as durationInConsole } from "../../../src/console/parts/Format.ts"
import { html } from "../../../src/exports/report/Html.ts"
import {
  count,
  counted,
  cut,
  duration,
  hash,
  micros,
  seconds,
  shown
} from "../../../src/exports/report/ShownText.ts"
import { cssString } from "../../../src/exports/report/Stylesheet.ts"

const entities = (markup: string): string =>
  markup.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))

const asEntities = (text: string): string =>
  text
    .split("")
    .map((unit) => `&#${unit.charCodeAt(0)};`)
    .join("")

/** What a reader of the markup sees: tags away, entities resolved, code points read back. */
const readBack = (markup: string): string =>
  entities(
    markup
      .replace(/<bdi dir="ltr" class="code-point">U\+([0-9A-F]+)<\/bdi>/g, (_, code: string) =>
        asEntities(String.fromCodePoint(Number.parseInt(code, 16)))
      )
      .replace(/<[^>]*>/g, "")
  )

describe("shown", () => {
  it("leaves ordinary text of embedded scripts as it is", () => {
    const texts = "a b|Łódź|محمد|דוח|季度报告|カタカナ|हिन्दी|한국어 힣|ผู้ใช้|Việt|10\u00a0%"
    for (const text of texts.split("|")) {
      assert.strictEqual(shown(text).markup, `<bdi dir="auto" class="foreign">${text}</bdi>`)
    }
  })

  it("writes what can't be seen as code points", () => {
    const unseen =
      "\u0000\t\n\u001b\u007f\u00ad\u061c\u180e\u200b\u200d\u200e\u202a\u202e\u2028\u2066\u2069"
      + "\ufe0f\ufeff\u3164\ufff9\u{e0041}\u{1f600}\ue000\u{10ffff}\u2003"
    for (const character of unseen) {
      const name = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")
      assert.include(shown(`a${character}b`).markup, `class="code-point">U+${name}</bdi>`)
    }
  })

  it("stops marks from piling up", () => {
    const markup = shown(`a${"\u0301".repeat(9)}`).markup
    assert.strictEqual(markup.split("U+0301").length - 1, 5)
  })

  it("can't be broken out of", () => {
    const markup = shown(`</bdi><script>"'\`&</script>`).markup
    assert.notInclude(markup, "<script")
    assert.strictEqual(html`<a title="${'"x'}">`.markup, '<a title="&#34;x">')
  })

  effectIt.prop("loses nothing of any text", [Schema.String], ([text]) => {
    const whole = text.isWellFormed() ? text : text.toWellFormed()
    assert.strictEqual(readBack(shown(whole).markup), whole)
    assert.notMatch(shown(whole).markup.replace(/<\/?bdi[^>]*>/g, ""), /[<>"'`]/)
  })

  it("cuts between characters and says how much it cut", () => {
    assert.deepStrictEqual(cut("abcdef", 4), { text: "abcd", leftOut: 2 })
    assert.deepStrictEqual(cut("😀😀😀", 2), { text: "😀😀", leftOut: 1 })
    assert.deepStrictEqual(cut("😀😀", 3), { text: "😀😀", leftOut: 0 })
    assert.include(shown(cut("x".repeat(5_000), 10)).markup, "… 4,990 more characters")
  })
})

describe("numbers, times and hashes", () => {
  it("are written in one way", () => {
    assert.strictEqual(count(1_234_567), "1,234,567")
    assert.strictEqual(counted(1, "event"), "1 event")
    assert.strictEqual(counted(0, "event"), "0 events")
    assert.strictEqual(seconds("2026-11-21T10:00:01.000002Z"), "2026-11-21 10:00:01")
    assert.strictEqual(micros("2026-11-21T10:00:01.000002Z"), "2026-11-21 10:00:01.000002")
    assert.strictEqual(hash("0123456789abcdef").markup.replace(/<[^>]*>/g, ""), "0123456789abcdef")
  })
})

describe("duration", () => {
  it("is the same in a report and in the console, with halves rounded up", () => {
    assert.strictEqual(duration, durationInConsole)
    const micros = [0, 72_500, 98_501, 1_495_000, 1_499_720, 4_250, 9_960, 12_450_000]
    assert.deepStrictEqual(micros.map(duration), [
      "0 µs",
      "73 ms",
      "99 ms",
      "1.50 s",
      "1.50 s",
      "4.3 ms",
      "10 ms",
      "12.5 s"
    ])
  })

  it("has its two largest units", () => {
    const micros = [
      999_499, 999_500, 59_949_999, 59_999_999, 60_000_000, 185_000_000, 3_599_600_000,
      5_400_000_000, 86_399_000_000, 187_200_000_000
    ]
    assert.deepStrictEqual(micros.map(duration), [
      "999 ms",
      "1.00 s",
      "59.9 s",
      "1 min",
      "1 min",
      "3 min 5 s",
      "1 h",
      "1 h 30 min",
      "1 d",
      "2 d 4 h"
    ])
  })
})

describe("cssString", () => {
  it("leaves nothing that could end the string", () => {
    const escaped = cssString(`"; } </style>\n\\ é😀`)
    assert.match(escaped, /^"[A-Za-z0-9 \\]*"$/)
    assert.strictEqual(cssString("acme"), '"acme"')
  })
})
