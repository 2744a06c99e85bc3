/** The verifiers as packs carry them: one file each, of the sources that the service runs itself. */
import { builtinModules } from "node:module"
import { assert, describe, it } from "vitest"
import { verifierFiles } from "../../src/adapters/esbuild/PackVerifiersBundle.ts"
import { packAssets } from "../../src/exports/pack/PackAssets.ts"

const { checks, program } = await verifierFiles()

describe("the verifiers in a pack", () => {
  it("import nothing but what the runtime has, and in a page not even that", () => {
    const wanted = /^ *(?:import\b.*? from |import |.*\brequire\()"([^"]+)"/gm
    const named = [...program.matchAll(wanted)].map(([, name]) => name!)
    assert.isNotEmpty(named)
    for (const name of named) assert.include(builtinModules, name.replace(/^node:/, ""))
    assert.deepStrictEqual([...checks.matchAll(wanted)], [])
    for (const code of [checks, program]) assert.notMatch(code, /node_modules|\bSchema\b/)
  })

  it("hash by the same sources, named in them, but for SHA-256 in a page", () => {
    const sources = (code: string) =>
      [...code.matchAll(/^ *\/\/ (src\/.*)$/gm)].map(([, path]) => path!)
    const ofDomain = sources(program).filter((path) => path.startsWith("src/domain/"))
    for (const name of ["chain/Chains.ts", "events/HashChain.ts", "traces/FactText.ts"]) {
      assert.include(ofDomain, `src/domain/${name}`)
    }
    const others = ofDomain.filter((path) => !sources(checks).includes(path))
    assert.deepStrictEqual(others, ["src/domain/Sha256.ts"])
    assert.include(sources(checks), "src/domain/Sha256ByHand.ts")
  })

  it("are readable, and whole in the page", () => {
    for (const code of [checks, program]) {
      assert.isBelow(Math.max(...code.split("\n").map(({ length }) => length)), 1000)
      assert.include(code, "rootOfProof")
    }
    const page = packAssets({ checks, program }).find(({ name }) => name === "verify.html")
    assert.include(page!.content.toString(), checks)
  })
})
