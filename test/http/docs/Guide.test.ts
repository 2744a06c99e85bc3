/** The guide as it is served: pages made of `docs`, their links, their forms, and nothing else. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { readGuideFolder } from "../../../src/http/docs/GuideFolder.ts"
import { guidePages, referencePages } from "../../../src/http/docs/GuidePages.ts"
import { GUIDE_PATH } from "../../../src/http/docs/GuidePaths.ts"
import { findRoute } from "../../../src/http/server/RouteTable.ts"
import { TestApi } from "../support/TestApi.ts"

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

const matches = (text: string, pattern: RegExp): ReadonlyArray<string> =>
  [...text.matchAll(pattern)].map(([, found]) => found!)

describe("the guide", () => {
  let api: TestApi
  /** HTML by path, of everything that can be reached from the list of pages. */
  const pages = new Map<string, string>()
  const pictures = new Set<string>()

  const visit = async (path: string): Promise<void> => {
    if (pages.has(path)) return
    const { headers, status, text } = await api.call(path, { headers: { accept: BROWSER } })
    assert.strictEqual(status, 200, path)
    assert.strictEqual(headers["content-type"], "text/html; charset=utf-8", path)
    pages.set(path, text)
    for (const picture of matches(text, / src="([^"]*)"/g)) pictures.add(picture)
    for (const href of matches(text, /<a [^>]*href="([^"]*)"/g)) {
      const [target = ""] = href.split("#")
      if (target.startsWith(GUIDE_PATH) && !target.endsWith(".md")) await visit(target)
    }
  }

  beforeAll(async () => {
    api = await TestApi.start()
    await visit(GUIDE_PATH)
  })
  afterAll(() => api.stop())

  it("has a page for each name of its lists", () => {
    assert.deepStrictEqual(
      [...guidePages, ...referencePages]
        .map(({ name }) => `${GUIDE_PATH}/${name}`)
        .filter((path) => !pages.has(path)),
      []
    )
  })

  it("leads from page to page only, to anchors and routes that are there", () => {
    const wrong: Array<string> = []
    const isThere = (path: string, href: string): boolean => {
      if (/^https:\/\//.test(href)) return true
      const [target = "", anchor] = href.split("#")
      const page = pages.get(target === "" ? path : target)
      if (page === undefined) return anchor === undefined && findRoute("GET", target) !== undefined
      return anchor === undefined || page.includes(` id="${anchor}"`)
    }
    for (const [path, text] of pages) {
      for (const href of matches(text, /href="([^"]*)"/g)) {
        if (!href.startsWith("data:") && !isThere(path, href)) wrong.push(`${path}: ${href}`)
      }
    }
    assert.deepStrictEqual(wrong, [])
    assert.isAbove(pages.size, 15)
  })

  it("holds no script, and no id twice", () => {
    for (const [path, text] of pages) {
      const tags = matches(text, /<([^>]*)>/g)
      assert.deepStrictEqual(
        tags.filter((tag) => /^script|\son\w+=|javascript:|\sstyle=/i.test(tag)),
        [],
        path
      )
      const ids = matches(text, / id="([^"]*)"/g)
      assert.strictEqual(new Set(ids).size, ids.length, path)
    }
  })

  it("shows its pictures, which run nothing", async () => {
    assert.isNotEmpty([...pictures])
    for (const picture of pictures) {
      const { headers, status } = await api.call(picture)
      assert.deepStrictEqual([status, headers["content-type"]], [200, "image/svg+xml"], picture)
      assert.include(headers["content-security-policy"], "sandbox")
    }
  })

  it("may load nothing but pictures of this address", async () => {
    const { headers } = await api.call(GUIDE_PATH)
    const policy = String(headers["content-security-policy"])
    assert.match(policy, /^default-src 'none'; style-src 'sha256-[\w+/=]+'; img-src 'self' data:;/)
    assert.include(policy, "frame-ancestors 'none'")
    assert.notInclude(policy, "unsafe")
  })

  it("gives the source to who asks for Markdown, and HTML to everybody else", async () => {
    const page = `${GUIDE_PATH}/glossary`
    const source = await api.call(`${page}.md`)
    assert.strictEqual(source.headers["content-type"], "text/markdown; charset=utf-8")
    assert.match(source.text, /^# /)
    for (const [accept, isSource] of [
      ["text/markdown", true],
      ["text/markdown, text/html, */*", true],
      ["text/html, text/markdown;q=0.5", false],
      ["*/*", false],
      ["application/json", false],
      [BROWSER, false]
    ] as const) {
      const { headers, status, text } = await api.call(page, { headers: { accept } })
      assert.strictEqual(status, 200, accept)
      assert.strictEqual(text === source.text, isSource, accept)
      assert.match(String(headers["vary"]), /^Accept,/)
    }
  })

  it("is kept by clients, and not sent again while it is the same", async () => {
    for (const path of [GUIDE_PATH, `${GUIDE_PATH}/glossary`, `${GUIDE_PATH}/glossary.md`]) {
      const { bytes, headers } = await api.call(path)
      assert.strictEqual(headers["cache-control"], "public, max-age=300")
      const known = { "if-none-match": String(headers.etag) }
      assert.strictEqual((await api.call(path, { headers: known })).status, 304)
      const head = await api.call(path, { method: "HEAD" })
      assert.deepStrictEqual([head.status, head.bytes.length], [200, 0])
      assert.strictEqual(head.headers["content-length"], String(bytes.length))
    }
    assert.strictEqual((await api.call(GUIDE_PATH, { method: "POST", raw: "" })).status, 405)
  })

  it("lists its pages for programs, each as Markdown", async () => {
    const { headers, text } = await api.call("/llms.txt")
    assert.strictEqual(headers["content-type"], "text/plain; charset=utf-8")
    assert.match(text, /^# alk\n\n> /)
    const links = matches(text, /\]\(([^)]*)\)/g)
    assert.isAbove(links.length, 8)
    for (const link of links) {
      assert.strictEqual((await api.call(link)).status, 200, link)
    }
    const list = await api.call(GUIDE_PATH, { headers: { accept: "text/markdown" } })
    assert.strictEqual(list.text, text)
  })

  it("offers its pages where there is none", async () => {
    const shown = await api.call(`${GUIDE_PATH}/nothing`, { headers: { accept: BROWSER } })
    assert.strictEqual(shown.status, 404)
    assert.include(shown.text, "<h1>There is no such page</h1>")
    assert.include(shown.text, `href="${GUIDE_PATH}/glossary"`)
    const source = await api.call(`${GUIDE_PATH}/nothing.md`, {
      headers: { accept: "text/markdown" }
    })
    assert.strictEqual(source.status, 404)
    assert.include(source.text, `(${GUIDE_PATH}/glossary.md)`)
  })

  it("gives nothing from outside of its lists, whatever the address", async () => {
    for (const path of [
      "/../package.json",
      "/../../package.json",
      "/..%2f..%2fpackage.json",
      "/%2e%2e/%2e%2e/package.json",
      "/..%252fpackage.json",
      "/..\\package.json",
      "/decisions/..%2f..%2f..%2fpackage.json",
      "//etc/passwd",
      "/%2fetc%2fpasswd",
      "/speed.json",
      "/decisions/",
      "/speed",
      "/glossary.md%00",
      "/glossary.md.md",
      "/GLOSSARY",
      "/constructor",
      "/__proto__"
    ]) {
      const { status, text } = await api.call(`${GUIDE_PATH}${path}`)
      assert.include([200, 404], status, path)
      if (status === 200) assert.strictEqual(path, "/speed")
      assert.notInclude(text, "allowScripts", path)
      assert.notInclude(text, "root:", path)
    }
  })
})

describe("the folder of the guide", () => {
  const base = mkdtempSync(join(tmpdir(), "alk-guide-"))
  afterAll(() => rmSync(base, { recursive: true }))

  it("is read within itself: a link out of it is no page", async () => {
    const folder = join(base, "docs")
    mkdirSync(join(folder, "decisions"), { recursive: true })
    mkdirSync(join(folder, "speed"))
    writeFileSync(join(base, "outside"), "# Outside")
    writeFileSync(join(folder, "query.md"), "# Query")
    writeFileSync(join(folder, "decisions/inside.md"), "# Inside")
    for (const name of [
      "glossary.md",
      "decisions/README.md",
      "decisions/out.md",
      "speed/out.svg"
    ]) {
      symlinkSync(join(base, "outside"), join(folder, name))
    }
    symlinkSync(join(folder, "query.md"), join(folder, "records.md"))
    const { decisions, guide, pictures, reference } = await readGuideFolder(folder)
    assert.deepStrictEqual(
      guide.map(({ markdown, page }) => [page.name, markdown]),
      [
        ["query", "# Query"],
        ["records", "# Query"]
      ]
    )
    assert.deepStrictEqual(
      decisions.map(({ page }) => [page.name, page.title]),
      [["decisions/inside", "Inside"]]
    )
    assert.deepStrictEqual([reference, pictures.size], [[], 0])
  })

  it("may lack every page", async () => {
    const found = await readGuideFolder(join(base, "nothing"))
    assert.deepStrictEqual(found, {
      guide: [],
      reference: [],
      decisions: [],
      pictures: new Map()
    })
  })
})
