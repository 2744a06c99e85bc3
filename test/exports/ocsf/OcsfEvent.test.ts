/**
 * Events as OCSF: each action in the class that its names say, every line as the published schema
 * describes it, and nothing lost: the stored event and its hashes come back from it.
 */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { recompute } from "../../../src/domain/events/HashChain.ts"
import { ocsfActivityOf } from "../../../src/exports/ocsf/OcsfClass.ts"
import { anyEvents } from "../../adapters/clickhouse/support/Generators.ts"
import { makeAjv } from "../../contracts/Published.ts"
import { Chain } from "../../verify/support/Chains.ts"
import { mapped, sampleBodies, storedBody, toLine } from "./OcsfSamples.ts"

const validate = makeAjv().compile(
  JSON.parse(readFileSync("schemas/ocsf-event.schema.json", "utf8"))
)

const assertDescribed = (line: string): void => {
  if (!validate(JSON.parse(line))) assert.fail(`${line}\n${JSON.stringify(validate.errors)}`)
}

describe("the class and the activity", () => {
  it.each(mapped)("of a %s, %s: %i, %i", (type, action, classUid, activityId) => {
    const { id, kind } = ocsfActivityOf(action, type)
    assert.deepStrictEqual([kind.uid, id], [classUid, activityId])
  })
})

describe("an event of OCSF", () => {
  it("is as its schema says, and holds the stored event byte for byte", () => {
    for (const body of sampleBodies) {
      const line = toLine(body)
      assertDescribed(line)
      assert.strictEqual(storedBody(line), body)
    }
  })

  it("whatever was sent", () => {
    fc.assert(
      fc.property(anyEvents, (samples) => {
        const chain = new Chain("acme").extend(samples.length, (n) => samples[n] as object)
        for (const body of chain.bodies) {
          const line = toLine(body)
          assertDescribed(line)
          assert.notInclude(line, "\n")
          assert.strictEqual(recompute(storedBody(line))?.exact, true)
        }
      }),
      { numRuns: 3 }
    )
  })

  it("says who, what, when, whether and where in the attributes of its class", () => {
    const chain = new Chain("acme").append({
      id: "evt-1",
      timestamp: "2026-11-21T10:00:01.000999Z",
      actor: { id: "user_1", type: "human", email: "ann@example.com" },
      action: "document.read",
      resource: { id: "doc_1", type: "document", name: "Report" },
      outcome: "failure",
      metadata: { ip: "192.0.2.1" }
    })
    const event = JSON.parse(toLine(chain))
    const user = { uid: "user_1", email_addr: "ann@example.com", type_id: 1, type: "User" }
    assert.deepInclude(event, {
      class_uid: 6003,
      class_name: "API Activity",
      category_uid: 6,
      activity_id: 2,
      activity_name: "Read",
      type_uid: 600_302,
      type_name: "API Activity: Read",
      time: Date.UTC(2026, 10, 21, 10, 0, 1),
      status_id: 2,
      status: "Failure",
      status_code: "failure",
      severity_id: 1,
      actor: { user },
      src_endpoint: { ip: "192.0.2.1" },
      api: { operation: "document.read" },
      resources: [{ uid: "doc_1", name: "Report", type: "document" }]
    })
    const { created_at, hash, prev_hash } = JSON.parse(chain)
    assert.deepInclude(event.metadata, {
      version: "1.4.0",
      uid: "evt-1",
      sequence: 1,
      tenant_uid: "acme",
      event_code: "document.read",
      original_time: "2026-11-21T10:00:01.000999Z",
      logged_time: Date.parse(created_at)
    })
    assert.deepInclude(event.unmapped, { tenant_id: "acme", sequence_number: 1, hash, prev_hash })
  })

  it("names its action where OCSF has no activity for it", () => {
    const event = JSON.parse(toLine(new Chain("acme").append({ action: "payment.approve" })))
    assert.deepInclude(event, {
      activity_id: 99,
      activity_name: "payment.approve",
      type_name: "API Activity: Other",
      src_endpoint: { name: "unknown" }
    })
  })
})
