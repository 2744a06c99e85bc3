/** What makes room where the executions that are followed take more memory than they may. */
import { assert, describe, it } from "@effect/vitest"
import {
  FollowedBytes,
  TENANT_FOLLOWED_BYTES_MAX
} from "../../../src/actors/feeds/FollowedBytes.ts"

describe("executions that are followed", () => {
  const world = (bytesMax: number) => {
    const all = new FollowedBytes(bytesMax)
    const madeRoom: Array<string> = []
    const begin = (tenantId: string, name: string) =>
      all.begin(tenantId, () => void madeRoom.push(name))
    return { all, begin, madeRoom }
  }

  it("make room where they are the largest of the tenant that follows the most", () => {
    const { all, begin, madeRoom } = world(1_000)
    const [small, other] = [begin("acme", "small"), begin("globex", "other")]
    const [first, second] = [begin("initech", "first"), begin("initech", "second")]
    other.add(450)
    first.add(200)
    second.add(300)
    for (let n = 0; n < 5; n++) small.add(40)
    assert.deepStrictEqual(madeRoom, ["second"])
    assert.isTrue(second.isOneTooMany)
    for (const one of [small, other, first]) assert.isFalse(one.isOneTooMany)
    assert.strictEqual(all.bytes, 850)
    first.add(500)
    assert.deepStrictEqual(madeRoom, ["second", "first"])
    for (const one of [small, other, first, second]) one.release()
    assert.strictEqual(all.bytes, 0)
  })

  it("are of one tenant no more than it may follow, however little the others do", () => {
    const { begin, madeRoom } = world(4 * TENANT_FOLLOWED_BYTES_MAX)
    const [first, second, other] = [begin("acme", "1"), begin("acme", "2"), begin("globex", "3")]
    first.add(TENANT_FOLLOWED_BYTES_MAX)
    other.add(1)
    assert.isFalse(second.isOneTooMany)
    second.add(1)
    assert.isTrue(second.isOneTooMany)
    assert.isFalse(other.isOneTooMany)
    assert.deepStrictEqual(madeRoom, [])
  })
})
