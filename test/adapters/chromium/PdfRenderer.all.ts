/** The renderer against a real Chromium: what it prints, refuses to fetch and survives. */
import { readdirSync, readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import type { AddressInfo } from "node:net"
import { createServer, type Server } from "node:net"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { Clock, Duration, Effect, Exit, Fiber, Layer, Logger, ManagedRuntime } from "effect"
import { TestClock } from "effect/testing"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { npmChromium } from "../../../src/adapters/chromium/NpmChromium.ts"
import {
  layerChromium,
  type PdfRendererSettings
} from "../../../src/adapters/chromium/PdfRendererChromium.ts"
import { type PdfDocument, PdfRenderer } from "../../../src/ports/PdfRenderer.ts"
import { eventuallyAsync } from "../../support/Eventually.ts"
import { readPdf } from "../../support/PdfReader.ts"

const cacheFolder = join(homedir(), ".cache", "alk")

const documentOf = (body: string, changed: Partial<PdfDocument> = {}): PdfDocument => ({
  title: "A document",
  language: "en",
  styles:
    "@page { size: A4; margin: 20mm;"
    + " @bottom-right { content: counter(page) ' of ' counter(pages) } }",
  body,
  createdAt: "2026-11-21T10:00:01.000000Z",
  ...changed
})

const runtimeOf = (
  changed: Partial<PdfRendererSettings> = {},
  around: Layer.Layer<never> = Layer.empty
) =>
  ManagedRuntime.make(
    layerChromium({ path: undefined, cacheFolder, ...changed }).pipe(Layer.provideMerge(around))
  )

const render = (document: PdfDocument) => PdfRenderer.use((pdf) => pdf.render(document))

/** Browsers that this process has started and that have not ended. */
const browserIds = (): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/stat`, "latin1")
        const [, state, parent] = /\) (\S) (\d+)/.exec(status) ?? []
        if (Number(parent) !== process.pid || state === "Z") return false
        return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("--remote-debugging")
      } catch {
        return false
      }
    })
    .map(Number)

const runtime = runtimeOf({ waitingMax: 3 })
afterAll(() => runtime.dispose())

describe("PdfRenderer", () => {
  it("prints a tagged document with outline, page numbers and embedded fonts", async () => {
    const body =
      '<h1>First</h1><a href="#second">Second on page</a> <b data-page-of="second">?</b>'
      + '<h1 id="second" style="break-before: page">Second</h1><h2>Below</h2>'
    const pdf = await readPdf(await runtime.runPromise(render(documentOf(body))))
    assert.strictEqual(pdf.pages.length, 2)
    assert.match(pdf.pages[0]!, /Second on page 2/)
    assert.match(pdf.pages[0]!, /^1 of 2 /)
    assert.match(pdf.pages[1]!, /^2 of 2 /)
    assert.deepStrictEqual(pdf.outline, ["First", "Second", "  Below"])
    assert.strictEqual(pdf.title, "A document")
    assert.strictEqual(pdf.language, "en")
    assert.isTrue(pdf.tagged)
    assert.deepStrictEqual(pdf.fontsNotEmbedded, [])
    assert.strictEqual(pdf.createdAt, "D:20261121100001+00'00'")
  })

  it("gives the same bytes for the same document, whatever it printed before", async () => {
    const document = documentOf(
      '<a href="#t">t</a><table id="t"><thead><tr><th>a<th>b</thead><tr><td>1<td>2</table>'
    )
    const first = await runtime.runPromise(render(document))
    await runtime.runPromise(render(documentOf("<table><tr><th>x</table>".repeat(30))))
    const again = await runtime.runPromise(render(document))
    const elsewhere = runtimeOf()
    const other = await elsewhere.runPromise(render(document))
    await elsewhere.dispose()
    assert.isTrue(Buffer.from(first).equals(again))
    assert.isTrue(Buffer.from(first).equals(other))
  })

  describe("with a document that is hostile markup", () => {
    let server: Server
    let connections = 0
    let folder = ""
    const canary = "CANARY-4711"

    beforeAll(async () => {
      server = createServer((socket) => {
        connections += 1
        socket.on("error", () => undefined)
        socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${canary.length}\r\n\r\n${canary}`)
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      folder = await mkdtemp(join(tmpdir(), "alk-pdf-canary-"))
      await writeFile(join(folder, "secret.txt"), canary)
      await writeFile(join(folder, "secret.html"), `<p>${canary}</p>`)
      await writeFile(join(folder, "secret.css"), `body::after { content: "${canary}" }`)
    })
    afterAll(async () => {
      server.close()
      await rm(folder, { recursive: true, force: true })
    })

    it("opens no connection, reads no file, runs no script", async () => {
      const { port } = server.address() as AddressInfo
      const bases = [`http://127.0.0.1:${port}/`, `http://localhost:${port}/`, `file://${folder}/`]
      const markup = bases.map(
        (base) => `
        <link rel="preconnect" href="${base}"><link rel="dns-prefetch" href="${base}">
        <link rel="prefetch" href="${base}secret.html">
        <link rel="stylesheet" href="${base}secret.css">
        <link rel="icon" href="${base}secret.txt"><link rel="prerender" href="${base}secret.html">
        <style>@import "${base}secret.css"; @font-face { font-family: x; src: url("${base}x") }
          .x { font-family: x; background: url("${base}secret.txt") }</style>
        <script>document.body.append("SCRIPT-RAN")</script><script src="${base}secret.txt"></script>
        <img src="${base}secret.txt" onerror="document.body.append('SCRIPT-RAN')">
        <img srcset="${base}a 1x, ${base}b 2x"><iframe src="${base}secret.html"></iframe>
        <iframe srcdoc="<img src='${base}secret.txt'>"></iframe>
        <object data="${base}secret.html"></object><embed src="${base}secret.txt">
        <video src="${base}a" poster="${base}b" autoplay></video>
        <audio src="${base}a" autoplay></audio>
        <svg><use href="${base}secret.svg#a"/><image href="${base}secret.txt"/>
          <foreignObject><iframe src="${base}secret.html"></iframe></foreignObject></svg>
        <form action="${base}secret.html"><input type="image" src="${base}secret.txt"></form>
        <p class="x">shown</p><meta http-equiv="refresh" content="0; url=${base}secret.html">`
      )
      const bytes = await runtime.runPromise(
        render(documentOf(`<p>before</p>${markup.join("")}<p>after</p>`))
      )
      const text = (await readPdf(bytes)).pages.join("\n")
      assert.match(text, /before/)
      assert.match(text, /after/)
      assert.notInclude(text, canary)
      assert.notInclude(text, "SCRIPT-RAN")
      assert.strictEqual(connections, 0)
    })
  })

  it("refuses styles that would end their own element", async () => {
    const exit = await runtime.runPromiseExit(
      render(documentOf("", { styles: "</style><script>1</script>" }))
    )
    assert.include(JSON.stringify(exit), '"refused"')
  })

  it("goes on after its browser was killed, in the middle of documents", async () => {
    await runtime.runPromise(render(documentOf("<p>warm</p>")))
    const rows = "<tr><td>a<td>b<td>c</tr>".repeat(3_000)
    const fibers = [1, 2, 3].map(() =>
      runtime.runFork(render(documentOf(`<table>${rows}</table>`)))
    )
    const killed = new Set<number>()
    for (let kills = 0; kills < 2; kills++) {
      // The first one is killed before it can have printed anything, so there is a second one.
      const pids = await eventuallyAsync(
        "a browser runs that was not killed",
        () => browserIds().filter((pid) => !killed.has(pid)),
        (found) => found.length > 0
      )
      for (const pid of pids) {
        killed.add(pid)
        process.kill(pid, "SIGKILL")
      }
    }
    const exits = await Promise.all(fibers.map((fiber) => Effect.runPromise(Fiber.await(fiber))))
    for (const exit of exits) {
      if (Exit.isFailure(exit)) assert.include(JSON.stringify(exit), '"PdfFailed"')
    }
    const next = await runtime.runPromise(render(documentOf("<p>as if nothing had been</p>")))
    assert.include((await readPdf(next)).pages[0]!, "as if nothing had been")
  })

  it("refuses more documents than may wait", async () => {
    const rows = "<tr><td>a<td>b</tr>".repeat(1_000)
    const exits = await Promise.all(
      Array.from({ length: 6 }, () =>
        runtime.runPromiseExit(render(documentOf(`<table>${rows}</table>`)))
      )
    )
    const refused = exits.filter(Exit.isFailure).map((exit) => JSON.stringify(exit))
    assert.strictEqual(refused.length, 2)
    for (const exit of refused) assert.include(exit, '"PdfBusy"')
  })

  it("gives up a document that takes too long, and prints the next", async () => {
    const documentMsMax = 600_000
    // The time of the first document is over as soon as its browser has it; that of others is long.
    const clock = Effect.runSync(Clock.clockWith(Effect.succeed))
    let isOver = false
    const hasty: Clock.Clock = Object.assign(Object.create(clock), {
      sleep: (duration: Duration.Duration) => {
        if (isOver || Duration.toMillis(duration) !== documentMsMax) return clock.sleep(duration)
        isOver = true
        return Effect.void
      }
    })
    const rendering = runtimeOf({ documentMsMax }, Layer.succeed(Clock.Clock, hasty))
    const long = "<table>" + "<tr><td>a<td>b<td>c<td>d</tr>".repeat(60_000) + "</table>"
    const exit = await rendering.runPromiseExit(render(documentOf(long)))
    assert.include(JSON.stringify(exit), '"timeout"')
    assert.include(JSON.stringify(exit), `not printed within ${documentMsMax / 1_000} s`)
    const next = await rendering.runPromise(render(documentOf("<p>next</p>")))
    assert.include((await readPdf(next)).pages[0]!, "next")
    await rendering.dispose()
  })

  it("starts no browser before the first document, renews and closes it", async () => {
    const before = browserIds()
    const own = () => browserIds().filter((pid) => !before.includes(pid))
    const idleMs = 60_000
    const frugal = runtimeOf({ documentsPerBrowser: 1, idleMs }, TestClock.layer())
    await frugal.runPromise(PdfRenderer)
    assert.deepStrictEqual(own(), [])
    await frugal.runPromise(render(documentOf("<p>one</p>")))
    const [first] = own()
    assert.isDefined(first)
    await frugal.runPromise(render(documentOf("<p>two</p>")))
    assert.notInclude(own(), first)
    assert.lengthOf(own(), 1)
    await frugal.runPromise(TestClock.adjust(idleMs))
    await eventuallyAsync("the idle browser is closed", own, (pids) => pids.length === 0)
    await frugal.runPromise(render(documentOf("<p>three</p>")))
    await frugal.dispose()
    assert.deepStrictEqual(own(), [])
  })

  it("warns once that it prints without a sandbox, or does not print, as it was told", async () => {
    const { getuid } = process
    process.getuid = () => 0
    try {
      const told: Record<string, ReadonlyArray<string>> = {}
      for (const sandbox of ["auto", "off", "required"] as const) {
        const lines: Array<string> = []
        const logger = Logger.make(({ logLevel, message }) => {
          lines.push(`${logLevel} ${[message].flat().join(" ")}`)
        })
        const settings = { path: undefined, cacheFolder, sandbox, documentsPerBrowser: 1 }
        const own = ManagedRuntime.make(
          layerChromium(settings).pipe(Layer.provideMerge(Logger.layer([logger])))
        )
        const exits = [
          await own.runPromiseExit(render(documentOf("<p>one</p>"))),
          await own.runPromiseExit(render(documentOf("<p>two</p>")))
        ]
        await own.dispose()
        told[sandbox] = lines
        if (sandbox !== "required") assert.isTrue(exits.every(Exit.isSuccess))
        else assert.match(JSON.stringify(exits[0]), /PdfUnavailable.*ALK_CHROMIUM_SANDBOX=required/)
      }
      assert.lengthOf(told["auto"]!, 1)
      const [warning = ""] = told["auto"]!
      assert.match(warning, /^Warn .*without its sandbox.*another user.*ALK_CHROMIUM_SANDBOX/)
      assert.deepStrictEqual([told["off"], told["required"]], [[], []])
    } finally {
      process.getuid = getuid!
    }
  })

  it("starts its first browser again that crashed while it started", async () => {
    const folder = await mkdtemp(join(tmpdir(), "alk-chromium-"))
    const { environment, path: real } = await npmChromium(cacheFolder)
    const path = join(folder, "chromium")
    const settings = Object.entries(environment).map(([name, value]) => `${name}='${value}'`)
    const crashesOnce = [
      "#!/bin/sh",
      `[ -e "${folder}/crashed" ] || { : > "${folder}/crashed"; kill -SEGV $$; }`,
      `exec env ${settings.join(" ")} "${real}" "$@"`
    ]
    await writeFile(path, crashesOnce.join("\n"), { mode: 0o755 })
    const crashing = runtimeOf({ path })
    try {
      const pdf = await readPdf(await crashing.runPromise(render(documentOf("<p>Printed</p>"))))
      assert.match(pdf.pages.join(), /Printed/)
      assert.include(readdirSync(folder), "crashed")
    } finally {
      await crashing.dispose()
      await rm(folder, { recursive: true })
    }
  })

  it("says what to install where there is no Chromium", async () => {
    for (const path of ["/nowhere/chromium", "/etc/passwd", "/bin/true"]) {
      const without = runtimeOf({ path })
      const exit = await without.runPromiseExit(render(documentOf("<p>x</p>")))
      await without.dispose()
      const said = JSON.stringify(exit)
      assert.include(said, '"PdfUnavailable"')
      assert.include(said, path)
      assert.match(said, /install Chromium .*CHROMIUM_PATH/)
    }
  })
})
