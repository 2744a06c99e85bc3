/**
 * What `npm pack` makes, as those who install it have it: alone in a folder, on the oldest Node that
 * is at hand, in a real browser, and in front of two compilers.
 */
import { execFile, execFileSync, spawnSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, join, resolve } from "node:path"
import { promisify } from "node:util"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { startChromium } from "../console/ConsoleBrowser.ts"

/** Milliseconds; many times what a page needs on a busy machine. */
const PAGE_MS = 120_000

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), "alk-package-"))
const installed = join(folder, "node_modules", "alk")

/** What arrived at the service. */
const received: Array<{ readonly action: string; readonly key: string | undefined }> = []
let service: Server
let url: string

/** The Node that has the lowest version of those on the path, 20 at least. */
const oldestNode = (): { readonly path: string; readonly version: string } => {
  const found = (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((place) => join(place, "node"))
    .concat(process.execPath)
    .filter((path) => existsSync(path))
    .map((path) => ({
      path,
      version: execFileSync(path, ["--version"], { encoding: "utf8" }).trim()
    }))
    .filter(({ version }) => Number.parseInt(version.slice(1), 10) >= 20)
  return found.sort((left, right) =>
    left.version.localeCompare(right.version, "en", { numeric: true })
  )[0]!
}

const page = `<!doctype html><title>of a test</title><script type="module">
  import { createClient, verifyEvent } from "/client/index.js"
  const client = createClient({ url: location.origin, key: "of-the-page" })
  client.log({ actor: { id: "ada", type: "human" }, action: "page.opened", resource: { id: "p", type: "page" } })
  await client.flush()
  const event = await (await fetch("/event.json")).text()
  document.title = JSON.stringify({ counters: client.counters.events, verified: await verifyEvent(event) })
</script>`

const firstEvent = (): string => {
  const { chain } = JSON.parse(readFileSync("schemas/vectors/alk-chain-v1.json", "utf8"))
  return JSON.stringify(chain[0].event)
}

const startService = async (): Promise<void> => {
  service = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk) => (body += chunk))
    request.on("end", () => {
      if (request.method === "POST") {
        const { events } = JSON.parse(body) as {
          readonly events: ReadonlyArray<{ readonly action: string }>
        }
        for (const { action } of events)
          received.push({ action, key: request.headers.authorization })
        response.writeHead(202, { "content-type": "application/json" })
        return response.end(
          '{"receipt_id":"r","status":"pending","accepted":1,"rejected":0,"ids":[],"errors":[]}'
        )
      }
      if (request.url === "/event.json") return response.end(firstEvent())
      if (request.url?.startsWith("/client/") === true) {
        response.setHeader("content-type", "text/javascript")
        return response.end(readFileSync(join(installed, "dist", request.url)))
      }
      response.setHeader("content-type", "text/html")
      return response.end(page)
    })
  })
  await new Promise<void>((done) => service.listen(0, "127.0.0.1", done))
  url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
}

beforeAll(async () => {
  await startService()
  await run("npm", ["pack", "--pack-destination", folder])
  const [archive] = readdirSync(folder).filter((name) => name.endsWith(".tgz"))
  mkdirSync(installed, { recursive: true })
  await run("tar", ["-xzf", join(folder, archive!), "-C", installed, "--strip-components=1"])
})

afterAll(() => {
  service?.close()
  rmSync(folder, { recursive: true, force: true })
})

describe("the package", () => {
  it("holds what it exports, and no sources", () => {
    const { exports: entries } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"))
    for (const entry of Object.values<Record<string, string>>(entries)) {
      for (const file of Object.values(entry))
        assert.isTrue(existsSync(join(installed, file)), file)
    }
    // npm packs what `bin` names; it says that the command runs in a clone.
    const sources = readdirSync(join(installed, "src"), { recursive: true, withFileTypes: true })
    assert.deepStrictEqual(
      sources.filter((entry) => entry.isFile()).map(({ name }) => name),
      ["alk.mjs"]
    )
    const command = spawnSync(process.execPath, [join(installed, "src/cli/alk.mjs")])
    assert.match(String(command.stderr), /runs in a clone/)
  })

  it("logs with two lines on the oldest Node at hand, with nothing else installed", async () => {
    const { path, version } = oldestNode()
    const program = join(folder, "program.mjs")
    writeFileSync(
      program,
      'import { createClient } from "alk/client"\n'
        + 'createClient().log({ actor: { id: "a", type: "human" }, action: "program.run", resource: { id: "r", type: "t" } })\n'
    )
    const environment = { ALK_URL: url, ALK_API_KEY: "of-the-program" }
    const { stderr } = await run(path, [program], { env: environment, cwd: folder })
    assert.strictEqual(stderr, "", version)
    assert.deepInclude(received, { action: "program.run", key: "Bearer of-the-program" })
  })

  it("is there alone too: dist is a package of the same exports, with no dependencies", async () => {
    const alone = join(folder, "alone")
    mkdirSync(alone)
    await run("npm", ["pack", "./dist", "--pack-destination", alone])
    const [archive] = readdirSync(alone)
    writeFileSync(join(alone, "package.json"), "{}")
    await run("npm", ["install", "--offline", "--no-audit", join(alone, archive!)], { cwd: alone })
    const modules = readdirSync(join(alone, "node_modules")).filter((name) => !name.startsWith("."))
    assert.deepStrictEqual(modules, ["alk"])
    const { exports: entries } = JSON.parse(readFileSync("package.json", "utf8"))
    const specifiers = Object.keys(entries).map((entry) => entry.replace(/^\./, "alk"))
    const program = join(alone, "program.mjs")
    writeFileSync(
      program,
      specifiers.map((specifier) => `await import(${JSON.stringify(specifier)})\n`).join("")
        + 'console.log(typeof (await import("alk/client")).createClient)\n'
    )
    const { stdout } = await run(oldestNode().path, [program], { cwd: alone })
    assert.strictEqual(stdout, "function\n")
  })

  it("ends a program while the service can't be reached, and says what was not sent", async () => {
    const program = join(folder, "unreachable.mjs")
    writeFileSync(
      program,
      'import { createClient } from "alk/client"\n'
        + 'const client = createClient({ url: "http://127.0.0.1:1", key: "k" })\n'
        + 'client.log({ actor: { id: "a", type: "human" }, action: "a.b", resource: { id: "r", type: "t" } })\n'
        // What can't be reached has to have been asked once.
        + "const pause = () => new Promise((resolve) => setTimeout(resolve, 10))\n"
        + "while (client.counters.events.retries === 0) await pause()\n"
        + "await client.close({ timeoutMs: 300 }).catch(({ waiting }) => console.log(waiting.total))\n"
    )
    const { stderr, stdout } = await run(oldestNode().path, [program], { cwd: folder })
    assert.strictEqual(stdout, "1\n")
    assert.match(stderr, /^alk: \S+ is not stored: not_delivered, given up before/)
    assert.include(stderr, "(last failure: the service at http://127.0.0.1:1 can't be reached")
  })

  it("logs and verifies in a page of a real browser", async () => {
    const browser = await startChromium()
    try {
      const opened = await browser.newPage()
      opened.setDefaultTimeout(PAGE_MS)
      const errors: Array<string> = []
      opened.on("pageerror", (error) => errors.push(error.message))
      await opened.goto(url)
      await opened.waitForFunction("document.title.startsWith('{')")
      const { counters, verified } = JSON.parse(await opened.title())
      assert.deepStrictEqual(verified, { valid: true, isErased: false })
      assert.strictEqual(counters.acknowledged, 1)
      assert.deepInclude(received, { action: "page.opened", key: "Bearer of-the-page" })
      assert.deepStrictEqual(errors, [])
    } finally {
      await browser.close()
    }
  })

  it("has declarations that both compilers take, with the types of Node or of browsers", async () => {
    const consumer = join(folder, "consumer.ts")
    writeFileSync(
      consumer,
      `import { type AuditEvent, ChainVerifier, createClient } from "alk/client"
import { audit } from "alk/client/express"
const client = createClient({ url: "http://a", key: "k" })
audit(client, { actor: (request) => ({ id: request.method, type: "human" }) })
export const read = async (): Promise<AuditEvent | undefined> => {
  for await (const event of client.events({ outcome: "failure" })) return event
  // @ts-expect-error no such route
  await client.request("GET /v1/evnts")
  return (await new ChainVerifier().add("")) === undefined ? undefined : undefined
}
`
    )
    const common = { noEmit: true, strict: true, target: "es2022", skipLibCheck: false }
    const kinds = [
      { module: "nodenext", types: ["node"], lib: ["es2022"] },
      { module: "esnext", moduleResolution: "bundler", types: [], lib: ["es2022", "dom"] }
    ]
    for (const compiler of ["typescript", "typescript5"]) {
      for (const kind of kinds) {
        const compilerOptions = { ...common, ...kind, typeRoots: [resolve("node_modules/@types")] }
        const config = { compilerOptions, files: ["consumer.ts"] }
        writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config))
        const command = [resolve("node_modules", compiler, "bin/tsc"), "-p", folder]
        const { stdout } = await run(process.execPath, command).catch((error) => error)
        assert.strictEqual(stdout, "", `${compiler} ${JSON.stringify(kind)}`)
      }
    }
  })
})
