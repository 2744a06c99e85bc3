/** Commands of `alk` against a service that is made up, for what a real one seldom does. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, assert, describe, it } from "vitest"
import { eventuallyAsync } from "../support/Eventually.ts"
import {
  begin,
  type Ended,
  endCommands,
  type Handler,
  json,
  type MadeUp,
  madeUpService
} from "./CommandRuns.ts"

const folder = mkdtempSync(join(tmpdir(), "alk-commands-"))
let service: MadeUp | undefined

afterEach(async () => {
  endCommands()
  await service?.stop()
  service = undefined
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A command against a service that answers so. */
const alkAt = async (handler: Handler, ...args: ReadonlyArray<string>) => {
  service = await madeUpService(handler)
  return begin(args, service.environment)
}

const alk = async (handler: Handler, ...args: ReadonlyArray<string>): Promise<Ended> =>
  (await alkAt(handler, ...args)).ended

const partsIn = (where: string): ReadonlyArray<string> =>
  readdirSync(where).filter((name) => name.endsWith(".part"))

/** Resolves once a part of a file holds something. */
const isBegun = () =>
  eventuallyAsync(
    "a part of the file is written",
    () => partsIn(folder).map((name) => readFileSync(join(folder, name), "utf8")),
    (texts) => texts.some((text) => text !== "")
  )

describe("alk export", () => {
  it("writes OCSF as the service makes it, to standard output or a file", async () => {
    const asked: Array<string> = []
    const handler: Handler = ({ search }, response) => {
      asked.push(search)
      response.end('{"class_uid":6003}\n')
    }
    const piped = await alk(handler, "export", "ocsf", "--action", "a.*")
    assert.deepStrictEqual([piped.end, piped.output], [0, '{"class_uid":6003}\n'], piped.errors)
    assert.strictEqual(piped.errors, "ocsf: 19 B\n")
    await service!.stop()
    const file = join(folder, "events.ndjson")
    const written = await alk(handler, "export", "ocsf", "-o", file)
    assert.strictEqual(written.end, 0, written.errors)
    assert.strictEqual(readFileSync(file, "utf8"), piped.output)
    assert.deepStrictEqual(asked, ["?action=a.*&format=ocsf", "?format=ocsf"])
  })
})

describe("a command that writes a file", () => {
  for (const [signal, exitCode] of [
    ["SIGINT", 130],
    ["SIGTERM", 143]
  ] as const) {
    it(`leaves nothing of it when it is ended by ${signal}, and says so`, async () => {
      const file = join(folder, `${signal}.csv`)
      // The answer never ends.
      const { child, ended } = await alkAt(
        (_, response) => void response.write("id\n"),
        ...["export", "csv", "-o", file]
      )
      await isBegun()
      child.kill(signal)
      const { end, errors } = await ended
      assert.strictEqual(end, exitCode)
      assert.strictEqual(errors, `alk: interrupted; ${file} was not written\n`)
      assert.isFalse(existsSync(file))
      assert.deepStrictEqual(partsIn(folder), [])
    })
  }

  it("keeps what it has followed until then, where that is how it ends", async () => {
    const file = join(folder, "followed.ndjson")
    const { child, ended } = await alkAt(
      (_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write('id: 1\ndata: {"sequence_number":1}\n\n')
      },
      ...["tail", "--after", "0", "-o", file]
    )
    await isBegun()
    child.kill("SIGINT")
    assert.strictEqual((await ended).end, 0)
    assert.strictEqual(readFileSync(file, "utf8"), '{"sequence_number":1}\n')
  })
})

describe("alk ingest", () => {
  it("keeps how far it was when it is ended by SIGINT, and says how to go on", async () => {
    const file = join(folder, "events.ndjson")
    writeFileSync(file, "{}\n")
    let isSent = false
    const { child, ended } = await alkAt(
      ({ pathname }, response) => {
        if (pathname === "/v1/me") return json(response, { tenant_id: "acme" })
        isSent = true
      },
      ...["ingest", file]
    )
    await eventuallyAsync("the events are sent", () => isSent)
    child.kill("SIGINT")
    const { end, errors } = await ended
    assert.strictEqual(end, 130, errors)
    assert.match(errors, /alk: interrupted\nnext: call it again: it goes on where it was\n$/)
    assert.isTrue(existsSync(`${file}.alk-ingest.json`))
  })

  it("asks for what records of other systems need, or nothing, and refuses other values", async () => {
    const file = join(folder, "records.ndjson")
    writeFileSync(file, "{}\n")
    const asked: Array<string> = []
    const handler: Handler = ({ pathname, search }, response) => {
      if (pathname === "/v1/me") return json(response, { tenant_id: "acme" })
      asked.push(search)
      json(response, { status: "committed", errors: [] })
    }
    for (const options of [[], ["--actions", "any", "--numbers", "text"]]) {
      const { end, errors } = await alk(handler, "ingest", file, "--restart", ...options)
      assert.strictEqual(end, 0, errors)
      await service!.stop()
    }
    assert.deepStrictEqual(asked, ["?sync=true", "?sync=true&actions=any&numbers=text"])
    assert.strictEqual((await alk(handler, "ingest", file, "--actions", "all")).end, 2)
  })
})

/** A page of a list whose rows are numbered on from those of the page before. */
const pageOf = (from: number, size: number) =>
  Array.from({ length: size }, (_, at) => ({
    id: `row-${from + at}`,
    sequence_number: from + at,
    status: "COMPLETED",
    outcome: "success",
    action: "a.b",
    agent_name: "agent",
    actor: { id: "ann", type: "human" },
    resource: { id: "r", type: "t" },
    timestamp: "2026-01-01T00:00:00.000000Z",
    started_at: "2026-01-01T00:00:00.000000Z",
    ended_at: "2026-01-01T00:00:00.000900Z"
  }))

/** How many rows have come when a further page is asked for. */
const rowsBeforeSecondPage = async (
  command: string,
  handler: (page: ReadonlyArray<unknown>) => unknown,
  isAtTerminal: boolean
): Promise<{ readonly before: number; readonly all: string }> => {
  let shown = ""
  let before = -1
  let pages = 0
  const rowsIn = (text: string) => (text.match(/row-\d+/g) ?? []).length
  service = await madeUpService((_, response) => {
    pages += 1
    if (pages === 1) return json(response, handler(pageOf(1, 1_000)))
    // The second page is held back until the first one is written.
    const isWritten = (rows: number) => rows >= 1_000
    void eventuallyAsync("the first page", () => rowsIn(shown), isWritten).then((rows) => {
      before = rows
      json(response, handler(pageOf(1_001, 5)))
    })
  })
  const { child, ended } = begin(
    [command, "--limit", "0", ...(command === "events" ? ["--oldest-first"] : [])],
    service.environment,
    isAtTerminal
  )
  child.stdout!.on("data", (chunk) => {
    shown += chunk
  })
  const { end, errors, output } = await ended
  assert.strictEqual(end, 0, errors)
  return { before, all: output }
}

describe("a list without a limit", () => {
  for (const [command, handler] of [
    ["events", (events: unknown) => ({ events, total: 1_005, page_size: 1_000 })],
    ["runs", (executions: unknown) => ({ executions, total: 1_005, page_size: 1_000 })]
  ] as const) {
    it(`comes as its pages come: alk ${command}`, async () => {
      const piped = await rowsBeforeSecondPage(command, handler, false)
      assert.strictEqual(piped.before, 1_000)
      assert.strictEqual(piped.all.trim().split("\n").length, 1_005)
      await service!.stop()
      const table = await rowsBeforeSecondPage(command, handler, true)
      assert.strictEqual(table.before, 1_000)
      const lines = table.all.trim().split(/\r?\n/)
      assert.strictEqual(lines.length, 1_006)
      if (command === "runs") assert.match(lines[1]!, / 900 µs /)
    })
  }
})

describe("alk verify --service", () => {
  const report = { valid: true, status: "valid", assurance: "signed", duration_ms: 5 }
  const found = { ...report, events_checked: 9, breaks: [], breaks_total: 0 }
  const progress = { events_checked: 4, up_to_sequence: 4, of: 9, breaks_total: 0 }

  it("says how far it is within a chain, and a line of each at the end", async () => {
    let shown = ""
    const handler: Handler = ({ searchParams }, response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" })
      const line = (value: unknown) => response.write(`${JSON.stringify(value)}\n`)
      if (searchParams.get("chain") === "traces") return void response.end(JSON.stringify(found))
      const timer = setInterval(() => line(progress), 50)
      const isShown = (text: string) => text.includes("events: 4 events recomputed, up to 4 of 9, ")
      void eventuallyAsync("how far it is", () => shown, isShown).then(() => {
        clearInterval(timer)
        line(found)
        response.end()
      })
    }
    service = await madeUpService(handler)
    const { child, ended } = begin(["verify", "--service"], service.environment, true)
    child.stdout!.on("data", (chunk) => {
      shown += chunk
    })
    const { end, output } = await ended
    assert.strictEqual(end, 0, output)
    assert.match(output, /events: valid, 9 events in .*\r\n/)
    assert.match(output, /\ntraces: valid, 9 facts in .*\r\nboth chains hold\r\n$/)
  })

  it("does not take an answer that was cut for a verdict", async () => {
    const { end, errors, output } = await alk(
      (_, response) => void response.end(`${JSON.stringify(progress)}\n`),
      ...["verify", "--service"]
    )
    assert.strictEqual(end, 3, errors)
    assert.match(errors, /^alk: the connection ended before the answer was complete/)
    assert.strictEqual(output, "")
  })
})

describe("alk bench", () => {
  it("passes its options on", async () => {
    const refused = await begin(["bench", "--quick", "--seconds", "many"]).ended
    assert.strictEqual(refused.end, 2)
    assert.match(refused.errors, /seconds/)
  })
})
