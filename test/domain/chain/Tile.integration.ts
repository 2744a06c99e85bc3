/**
 * Tiles against the definitions of C2SP tlog-tiles and the roots of the independent implementation.
 */
import { hash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { leafHash, nodeHash } from "../../../src/domain/chain/MerkleTree.ts"
import {
  entryBundle,
  leavesUpTo,
  nodesBeside,
  nodesOfTile,
  parseTile,
  rootWithTile,
  TILE_WIDTH,
  type Tile
} from "../../../src/domain/chain/Tile.ts"
import { askIndependentTree } from "../../support/IndependentTree.ts"
import { SEED } from "../../support/Seed.ts"

const LEAVES_MAX = 66_000
const hashes = Array.from({ length: LEAVES_MAX }, (_, n) => hash("sha256", `${SEED} ${n}`, "hex"))

/** Every complete subtree, by level. */
const levels = [hashes.map(leafHash)]
for (let below = levels[0]!; below.length > 1; below = levels.at(-1)!) {
  const parents: Array<Buffer> = []
  for (let at = 0; at + 1 < below.length; at += 2) {
    parents.push(nodeHash(below[at]!, below[at + 1]!))
  }
  levels.push(parents)
}
const node = (level: number, index: number): Buffer => levels[level]![index]!
const hashesOfTile = (tile: Tile) => nodesOfTile(tile).map(({ index, level }) => node(level, index))

const sizes = [
  ...[1, 2, 3, 255, 256, 257, 511, 512, 513, 65_535, 65_536, 65_537, 65_793, LEAVES_MAX],
  ...fc.sample(fc.integer({ min: 1, max: LEAVES_MAX }), { numRuns: 20 })
]
const { roots } = askIndependentTree({ hashes, sizes, inclusion: [], consistency: [] })

/** One of the sizes with its root, and a tile of such a tree. */
const tiles = fc
  .tuple(fc.nat(sizes.length - 1), fc.nat(2), fc.nat(), fc.integer({ min: 1, max: TILE_WIDTH }))
  .map(([at, wantedLevel, place, wantedWidth]) => {
    const size = sizes[at]!
    const level = size >= TILE_WIDTH ** wantedLevel ? wantedLevel : 0
    const nodes = Math.floor(size / TILE_WIDTH ** level)
    const index = place % Math.ceil(nodes / TILE_WIDTH)
    const width = Math.min(wantedWidth, nodes - index * TILE_WIDTH)
    return { size, root: roots[at]!, tile: { level, index, width } }
  })

describe("a tile", () => {
  it("leads to the root of the tree, and with any other hash to another one", () => {
    fc.assert(
      fc.property(tiles, fc.nat(), ({ root, size, tile }, place) => {
        const own = hashesOfTile(tile)
        const beside = new Set(
          nodesBeside(tile, size).map(({ index, level }) => `${level}/${index}`)
        )
        const source = (level: number, index: number) => {
          assert.isTrue(beside.delete(`${level}/${index}`), `${level}/${index}`)
          return node(level, index)
        }
        assert.strictEqual(rootWithTile(tile, own, size, source).toString("hex"), root)
        assert.strictEqual(beside.size, 0)
        const changed = own.with(place % own.length, Buffer.alloc(32, 7))
        assert.notStrictEqual(rootWithTile(tile, changed, size, node).toString("hex"), root)
      }),
      { numRuns: 300 }
    )
  })

  it("is of the sizes that the specification gives as an example", () => {
    // Of 70,000 leaves: 273 full tiles and one of 112, 1 and one of 17, one of 1.
    const last = [
      { level: 0, index: 273, width: 112 },
      { level: 1, index: 1, width: 17 },
      { level: 2, index: 0, width: 1 }
    ]
    for (const tile of last) {
      assert.isAtMost(leavesUpTo(tile), 70_000)
      assert.isAbove(leavesUpTo({ ...tile, width: tile.width + 1 }), 70_000)
    }
    assert.strictEqual(leavesUpTo({ level: 1, index: 0, width: 1 }), 256)
  })

  it("has the path of the specification, and no other one", () => {
    const full = (level: number, index: number) => ({ level, index, width: TILE_WIDTH })
    assert.deepStrictEqual(parseTile("0", "x001/x234/067"), full(0, 1_234_067))
    assert.deepStrictEqual(parseTile("63", "000"), full(63, 0))
    assert.deepStrictEqual(parseTile("1", "x273/112.p/8"), { level: 1, index: 273_112, width: 8 })
    assert.deepStrictEqual(parseTile("0", "999.p/255"), { level: 0, index: 999, width: 255 })
    const wrong: ReadonlyArray<readonly [level: string, path: string]> = [
      ...["", "0", "00", "0000", "x001", "001/002", "x000/001", "x001/x002", "001/", "/001", "-01"],
      ...["001.p", "001.p/", "001.p/0", "001.p/01", "001.p/256", "001.p/1/", "001.p/1.p/1"],
      ...["x999/x999/x999/x999/x999/999", "x001/x000/x000/x000/x000/x000/000", "001\n", "٠٠١"]
    ].map((path) => ["0", path] as const)
    for (const [level, path] of wrong) assert.isUndefined(parseTile(level, path), path)
    for (const level of ["", "00", "01", "64", "-1", "1e1", "entries"]) {
      assert.isUndefined(parseTile(level, "000"), level)
    }
  })
})

describe("an entry bundle", () => {
  it("is each hash after its length", () => {
    const bundle = entryBundle(hashes.slice(0, 3))
    assert.strictEqual(bundle.length, 3 * 34)
    for (let entry = 0; entry < 3; entry++) {
      assert.strictEqual(bundle.readUInt16BE(entry * 34), 32)
      const input = bundle.subarray(entry * 34 + 2, entry * 34 + 34)
      assert.strictEqual(input.toString("hex"), hashes[entry])
      const leaf = hash("sha256", Buffer.concat([Buffer.alloc(1), input]), "buffer")
      assert.isTrue(leaf.equals(node(0, entry)))
    }
  })
})
