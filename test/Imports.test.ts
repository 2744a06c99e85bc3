/** Who may import whom: the rooms of src, read off the import lines. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { assert, describe, it } from "vitest"

/**
 * The rooms from the lowest to the highest, and what each may import besides itself. `main.ts` and
 * `roles`, which put the program together, may import everything.
 */
const allowed: Readonly<Record<string, ReadonlyArray<string>>> = {
  domain: [],
  ports: ["domain"],
  config: ["domain"],
  actors: ["domain", "ports"],
  services: ["domain", "ports", "actors"],
  verify: ["domain", "ports", "actors"],
  exports: ["domain", "ports", "actors", "services", "verify"],
  contracts: ["domain", "ports", "actors", "services", "verify", "exports"],
  http: ["domain", "ports", "config", "actors", "services", "verify", "exports", "contracts"],
  // The service's own lines, and the command line, which asks the service as any client does.
  cli: ["domain", "ports", "config", "actors", "services", "verify", "exports", "http", "client"],
  adapters: ["domain", "ports"],
  tools: ["domain", "contracts", "http", "cli", "config"],
  // Runs anywhere, without a package: of the service it knows the API and how JSON is read.
  client: ["domain/json"],
  // In the browser: of the service it knows the API, what reads JSON, and what checks packs.
  console: ["domain", "client", "exports/checker"]
}

/** Rooms inside a room, from the lowest to the highest: each may import those before it. */
const floors: Readonly<Record<string, ReadonlyArray<string>>> = {
  "adapters/clickhouse": ["client", "topics", "events", "traces", "checkpoints"],
  "adapters/embedded": [".", "broker"],
  "adapters/kafka": ["protocol", "."],
  console: ["api", "proof", "state", "parts", "workers", "pages", "."],
  actors: ["log", "sequencer", "follower", "chainEnds", "feeds", "projection", "selfVerification"],
  domain: [".", "json", "chain", "events", "traces", "registry", "records"],
  exports: [".", "checker", "pack", "report"],
  services: ["commands", "ingest", "administration", "checkpoints"]
}

/** Audit events and execution traces share what is below both, and know nothing of each other. */
const apart = [
  ["events", "traces"],
  ["traces", "events"]
] as const

/** Packages that only adapters may name: everybody else speaks to the ports. */
const clients = ["kafkajs", "@clickhouse/client", "chdb", "playwright-core", "archiver", "esbuild"]
/** Compiles what the package exports. */
const builder = "tools/ClientPackage.ts"

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesBelow(path) : /\.tsx?$/.test(path) ? [path] : []
  })

/** Paths of src, relative to it. */
const files = filesBelow("src").map((file) => relative("src", file))

const namesIn = (file: string): ReadonlyArray<string> =>
  [...readFileSync(join("src", file), "utf8").matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map(
    (match) => match[1]!
  )

/** File by file, the files of src that it imports. */
const imports = new Map(
  files.map((file) => [
    file,
    namesIn(file)
      .filter((name) => name.startsWith("."))
      .map((name) => join(dirname(file), name))
  ])
)

const edges = [...imports].flatMap(([file, targets]) =>
  targets.map((target) => ({ file, target, line: `${file} -> ${target}` }))
)

const roomOf = (file: string): string => file.split("/")[0]!

/** The room inside `outer` that holds a file; `.` for one that stands in `outer` itself. */
const floorOf = (file: string, outer: string): string | undefined => {
  if (!file.startsWith(`${outer}/`)) return undefined
  const rest = file.slice(outer.length + 1).split("/")
  return rest.length === 1 ? "." : rest[0]!
}

describe("imports", () => {
  it("of every file are known: it is in a room that this test lists", () => {
    const rooms = new Set(files.map(roomOf))
    assert.sameMembers([...rooms], [...Object.keys(allowed), "main.ts", "roles"])
  })

  for (const [room, targets] of Object.entries(allowed)) {
    it(`of ${room} stay within ${[room, ...targets].join(", ")}`, () => {
      const wrong = edges.filter(
        ({ file, target }) =>
          roomOf(file) === room
          && ![room, ...targets].some((one) => target === one || target.startsWith(`${one}/`))
      )
      assert.deepStrictEqual(
        wrong.map(({ line }) => line),
        []
      )
    })
  }

  for (const [outer, order] of Object.entries(floors)) {
    it(`inside ${outer} go down: ${order.join(", ")}`, () => {
      const wrong = edges.filter(({ file, target }) => {
        const [from, to] = [floorOf(file, outer), floorOf(target, outer)]
        if (from === undefined || to === undefined || from === to) return false
        // What stands in the room itself, and is not listed, puts its rooms together.
        if (!order.includes(from)) return false
        return !order.includes(to) || order.indexOf(to) > order.indexOf(from)
      })
      assert.deepStrictEqual(
        wrong.map(({ line }) => line),
        []
      )
    })
  }

  for (const [one, other] of apart) {
    it(`never lead from rooms of ${one} to rooms of ${other}`, () => {
      const wrong = edges.filter(
        ({ file, target }) =>
          dirname(file).split("/").includes(one) && dirname(target).split("/").includes(other)
      )
      assert.deepStrictEqual(
        wrong.map(({ line }) => line),
        []
      )
    })
  }

  it("name the clients of brokers, stores and browsers in adapters only", () => {
    const wrong = files.flatMap((file) =>
      roomOf(file) === "adapters" || file === builder
        ? []
        : namesIn(file)
            .filter((name) => clients.some((one) => name === one || name.startsWith(`${one}/`)))
            .map((name) => `${file} -> ${name}`)
    )
    assert.deepStrictEqual(wrong, [])
  })

  it("never run in a circle, types included", () => {
    const done = new Set<string>()
    const path: Array<string> = []
    const circles: Array<string> = []
    const visit = (file: string): void => {
      const at = path.indexOf(file)
      if (at >= 0) circles.push([...path.slice(at), file].join(" -> "))
      if (at >= 0 || done.has(file)) return
      path.push(file)
      for (const target of imports.get(file) ?? []) visit(target)
      path.pop()
      done.add(file)
    }
    for (const file of files) visit(file)
    assert.deepStrictEqual(circles, [])
  })

  it("never name a place outside the project", () => {
    const outside = edges.filter(({ target }) => target.startsWith("../.."))
    assert.deepStrictEqual(
      outside.map(({ line }) => line),
      []
    )
    const absolute = files.filter((file) => namesIn(file).some((name) => name.startsWith("/")))
    assert.deepStrictEqual(absolute, [])
  })
})
