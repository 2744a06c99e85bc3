/** Markdown of a page as HTML: what is kept, what is not passed through, where links lead. */
import { assert, describe, it } from "vitest"
import { anchorOf } from "../../../src/http/docs/Anchors.ts"
import { guideLinkOf } from "../../../src/http/docs/GuideLinks.ts"
import { anchorsOf, renderMarkdown } from "../../../src/http/docs/Markdown.ts"

const linkable = {
  names: new Map([
    ["query.md", "query"],
    ["decisions/README.md", "decisions"],
    ["decisions/macs.md", "decisions/macs"]
  ]),
  pictures: new Set(["speed/ingest.svg"])
}
const linkFrom = (from: string) => (target: string) => guideLinkOf(target, from, linkable)
const rendered = (markdown: string) => renderMarkdown(markdown, linkFrom("query.md"))
const bodyOf = (markdown: string): string => rendered(markdown).body.markup.trim()

describe("a link of a page", () => {
  for (const [target, from, href] of [
    ["query.md#x-1", "glossary.md", "/docs/guide/query#x-1"],
    ["../query.md", "decisions/macs.md", "/docs/guide/query"],
    ["macs.md", "decisions/README.md", "/docs/guide/decisions/macs"],
    ["decisions/README.md", "query.md", "/docs/guide/decisions"],
    ["#below", "query.md", "#below"],
    ["speed/ingest.svg", "speed.md", "/docs/guide/speed/ingest.svg"],
    ["../schemas/openapi.json", "query.md", "/openapi.json"],
    ["../../schemas/asyncapi.yaml", "decisions/macs.md", "/asyncapi.yaml"],
    ["/docs", "query.md", "/docs"],
    ["https://example.com/a?b#c", "query.md", "https://example.com/a?b#c"]
  ] as const) {
    it(`to ${target} of ${from} leads to ${href}`, () => {
      assert.deepStrictEqual(linkFrom(from)(target), { is: "address", href })
    })
  }

  it("names what is not served: other files, and schemes that are no page", () => {
    for (const [target, path] of [
      ["../README.md#packages", "README.md"],
      ["../src/main.ts", "src/main.ts"],
      ["../../../../etc/passwd", "../../../etc/passwd"],
      ["missing", "docs/missing"],
      ["javascript:alert(1)", "javascript:alert(1)"],
      ["JavaScript:alert(1)", "JavaScript:alert(1)"],
      ["data:text/html,x", "data:text/html,x"],
      ["//evil.example/x", "//evil.example/x"]
    ] as const) {
      assert.deepStrictEqual(linkFrom("query.md")(target), { is: "file", path })
    }
    assert.strictEqual(
      bodyOf("[the source](../src/main.ts), [src/main.ts](../src/main.ts)"),
      "<p>the source (<code>src/main.ts</code>), <code>src/main.ts</code></p>"
    )
  })
})

describe("a page", () => {
  it("passes no HTML through, and no comment", () => {
    const markup = bodyOf(
      "a <b onclick=x>b</b> <script>c()</script>\n\n<script>\nd()\n</script>\n\n<!-- e -->\n\nf <!-- g -->"
    )
    assert.notMatch(markup, /<(?:b|script)/)
    assert.include(markup, "&#60;script&#62;")
    assert.notMatch(markup, /!--/)
  })

  it("escapes what is written in code, links, pictures and headings", () => {
    const markup = bodyOf(
      '`<i>&"`\n\n[x](https://a.example/"onload=1) ![" onerror="x](speed/ingest.svg)\n\n'
        + '## A `<b>`\n\n```sh\necho "<i>"\n```'
    )
    assert.notMatch(markup, /<[ib]>/)
    assert.notMatch(markup, /"[^"=<>]*" on\w+="/)
  })

  it("begins with its title, and has an anchor at each heading", () => {
    const { body, headings, title } = rendered(
      "# The `title`\n\ntext\n\n## One *two*\n\n### One two"
    )
    assert.strictEqual(title, "The title")
    assert.deepStrictEqual(headings, [
      { depth: 2, id: "one-two", text: "One two" },
      { depth: 3, id: "one-two-1", text: "One two" }
    ])
    assert.include(body.markup, '<h2 id="one-two">')
    assert.notInclude(body.markup, "<h1")
  })

  it("has tables that scroll by themselves, and no heading without words", () => {
    const named = bodyOf("| a | b |\n|---|--:|\n| 1 | 2 |")
    assert.match(named, /^<div class="scrolls" [^>]*tabindex="0"><table><thead>/)
    assert.include(named, '<td class="number">2</td>')
    assert.notInclude(bodyOf("| | |\n|---|---|\n| 1 | 2 |"), "<th")
  })

  it("shows a diagram as its text, with a caption", () => {
    assert.match(
      bodyOf("```mermaid\nflowchart LR\n  a --> b\n```"),
      /^<figure><pre [^>]*><code>flowchart LR\n {2}a --&#62; b<\/code><\/pre><figcaption>[^<]+<\/fi/
    )
  })
})

describe("the anchor of a heading", () => {
  it("is the one that GitHub makes", () => {
    for (const [heading, anchor] of [
      ["More cores", "more-cores"],
      ["What it promises, and what it doesn't", "what-it-promises-and-what-it-doesnt"],
      ["GET /v1/events", "get-v1events"],
      ["snake_case and kebab-case", "snake_case-and-kebab-case"],
      ["Größe: 2 × 3", "größe-2--3"]
    ] as const) {
      assert.strictEqual(anchorOf(heading), anchor)
    }
    const anchors = anchorsOf("# A\n\n## A\n\n```sh\n# no heading\n```\n\n## A-1")
    assert.deepStrictEqual([...anchors], ["a", "a-1", "a-1-1"])
  })
})
