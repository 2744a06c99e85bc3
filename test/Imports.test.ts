/** Who may import whom: the table of the README, read off the import lines. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"

const ANY = [
  "actors",
  "adapters",
  "cli",
  "contracts",
  "domain",
  "exports",
  "http",
  "pipeline",
  "ports",
  "verify"
]
const without = (...names: ReadonlyArray<string>) => ANY.filter((name) => !names.includes(name))

/** Folder by folder: what its files may import from src, itself included. */
const allowed: Record<string, ReadonlyArray<string>> = {
  domain: ["domain"],
  ports: ["ports", "domain"],
  actors: ["actors", "domain", "ports"],
  pipeline: ["pipeline", "actors", "domain", "ports"],
  verify: ["verify", "actors", "domain", "ports"],
  exports: ["exports", "verify", "pipeline", "actors", "domain", "ports"],
  http: without("adapters"),
  cli: without("adapters", "contracts"),
  contracts: without("adapters"),
  adapters: ["adapters", "domain", "ports"]
}
/** Packages that only adapters may name: everybody else speaks to the ports. */
const clients = ["kafkajs", "@clickhouse/client", "chdb", "playwright-core", "archiver"]
/** Files beside the folders that everybody but domain and ports may read. */
const shared = ["config.ts"]

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesBelow(path) : path.endsWith(".ts") ? [path] : []
  })

const importsOf = (file: string): ReadonlyArray<string> =>
  [...readFileSync(file, "utf8").matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map(
    (match) => match[1]!
  )

describe("imports", () => {
  for (const [folder, targets] of Object.entries(allowed)) {
    it(`of src/${folder} stay within ${targets.join(", ")}`, () => {
      const wrong = filesBelow(join("src", folder)).flatMap((file) =>
        importsOf(file).flatMap((name) => {
          if (!name.startsWith(".")) {
            const client = clients.some((one) => name === one || name.startsWith(`${one}/`))
            return client && folder !== "adapters" ? [`${file} -> ${name}`] : []
          }
          const target = join(file, "..", name).split("/").slice(1)
          if (target.length === 1) {
            // Roles and config stand beside the folders; types of Roles are what cli shows.
            const fine =
              shared.includes(target[0]!) || (folder === "cli" && target[0] === "Roles.ts")
            return fine && folder !== "domain" && folder !== "ports" ? [] : [`${file} -> ${name}`]
          }
          return targets.includes(target[0]!) ? [] : [`${file} -> ${name}`]
        })
      )
      assert.deepStrictEqual(wrong, [])
    })
  }

  it("never name a place outside the project", () => {
    const outside = filesBelow("src").filter((file) =>
      importsOf(file).some(
        (name) => name.startsWith("/") || join(file, "..", name).startsWith("..")
      )
    )
    assert.deepStrictEqual(outside, [])
  })
})
