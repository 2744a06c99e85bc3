/** How the processes of an installation share its partitions out. */
import { assert, it } from "@effect/vitest"
import fc from "fast-check"
import { partitionsOf } from "../../src/roles/PartitionAssignment.ts"

it("gives each partition to one process, and none more than one more than another", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 65 }), fc.integer({ min: 1, max: 1_024 }), (of, all) => {
      const shares = Array.from({ length: of }, (_, index) => partitionsOf({ index, of }, all))
      assert.sameMembers(
        shares.flat(),
        Array.from({ length: all }, (_, partition) => partition)
      )
      const sizes = shares.map(({ length }) => length)
      assert.isAtMost(Math.max(...sizes) - Math.min(...sizes), 1)
    }),
    { numRuns: 100 }
  )
})
