/** The manifest of a backup is read back as it was written, and refused when it was changed. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import {
  type BackupContent,
  isOfService,
  manifestText,
  partOf,
  readManifest
} from "../../../src/domain/backup/BackupManifest.ts"
import { RecordMac } from "../../../src/domain/records/RecordMac.ts"
import { makeAjv } from "../../contracts/Published.ts"

const hash = (digit: string): string => digit.repeat(64)

const mac = new RecordMac("the secret of the service")

const content: BackupContent = {
  format: "alk-backup-v1",
  alk_version: "0.1.0",
  service_name: "alk",
  taken_at: "2026-11-25T12:00:00.000000Z",
  topic_prefix: "alk",
  partitions: 6,
  keys: [{ file: "keys/secret", bytes: 65, sha256: hash("a") }],
  parts: [
    {
      topic: "events",
      partition: 2,
      from: 0,
      to: 12,
      segments: [
        {
          file: `segments/events-2-0-12-${hash("b")}`,
          from: 0,
          to: 12,
          records: 9,
          bytes: 900,
          sha256: hash("b")
        }
      ]
    }
  ],
  heads: [{ tenant_id: "acme", chain: "events", partition: 2, sequence_number: 9, hash: hash("c") }]
}

describe("the manifest of a backup", () => {
  it("is read back as it was written", () => {
    const { content_sha256, mac: given, ...read } = readManifest(manifestText(content, mac))
    assert.deepStrictEqual(read, content)
    assert.match(content_sha256, /^[0-9a-f]{64}$/)
    assert.match(given, /^[0-9a-f]{64}$/)
  })

  it("is the service's as long as nobody without its secret has changed it", () => {
    const written = readManifest(manifestText(content, mac))
    assert.isTrue(isOfService(written, mac))
    assert.isFalse(isOfService(written, new RecordMac("another secret")))
    assert.isFalse(isOfService({ ...written, heads: [] }, mac))
    const forged = readManifest(manifestText({ ...content, heads: [] }, new RecordMac("none")))
    assert.isFalse(isOfService(forged, mac))
  })

  it("is refused when any part of it was changed", () => {
    const changed = manifestText(content, mac).replace('"to": 12', '"to": 11')
    assert.throws(() => readManifest(changed), /manifest.json is not what was written/)
  })

  it("is refused when it is cut off", () => {
    assert.throws(() => readManifest(manifestText(content, mac).slice(0, -20)), /is no JSON/)
  })

  it("of a newer version says which one this program reads", () => {
    const newer = manifestText(content, mac).replace("alk-backup-v1", "alk-backup-v2")
    assert.throws(() => readManifest(newer), /format alk-backup-v2, this program reads/)
  })

  it("names no file outside of its folder", () => {
    const outside = { ...content, keys: [{ file: "keys/../../x", bytes: 1, sha256: hash("a") }] }
    assert.throws(() => readManifest(manifestText(outside, mac)), /keys\.0\.file/)
  })

  it("is what its published schema says", () => {
    const schema = JSON.parse(readFileSync("schemas/backup-manifest.schema.json", "utf8"))
    const isValid = makeAjv().compile(schema)
    assert.isTrue(isValid(JSON.parse(manifestText(content, mac))), JSON.stringify(isValid.errors))
    const open = { ...JSON.parse(manifestText(content, mac)), more: 1 }
    assert.isFalse(isValid(open))
  })

  it("says which part it has of a partition", () => {
    assert.strictEqual(partOf(content, "events", 2)?.to, 12)
    assert.strictEqual(partOf(content, "events", 1), undefined)
    assert.strictEqual(partOf(content, "traces", 2), undefined)
  })
})
