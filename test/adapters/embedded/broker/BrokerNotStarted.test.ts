import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import {
  explainEnd,
  loggedSince,
  logPositions
} from "../../../../src/adapters/embedded/broker/BrokerNotStarted.ts"
import { temporaryFolder } from "../fixtures.ts"

/** As Kafka 4.3.1 and Java 17 write them. */
const said: ReadonlyArray<readonly [string, string, string]> = [
  ["disk_full", "java.io.IOException: No space left on device", "free some space"],
  [
    "port_taken",
    "org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:9092:"
      + " Address already in use.",
    "ALK_KAFKA_PORT"
  ],
  [
    "folder_locked",
    "ERROR Kafka$ Failed to acquire lock on file .lock in /x. A Kafka instance in another process"
      + " or thread is using this directory.",
    "stop it"
  ],
  ["not_writable", "java.io.FileNotFoundException: /x/y (Permission denied)", "the right to"],
  ["out_of_memory", "java.lang.OutOfMemoryError: Java heap space", "1 GB"],
  [
    "damaged",
    "2026-11-21T13:00:00.000Z ERROR x\njava.lang.RuntimeException: No `meta.properties` in /x",
    "backup"
  ],
  ["ended", "2026-11-21T13:00:00.000Z INFO x\n\tNo space left on device = false", "exit code 3"],
  ["ended", "2026-11-21T13:00:00.000Z ERROR Kafka$ New and odd", "New and odd"]
]

describe("explainEnd", () => {
  it.each(said)("says %s in one line with the way out", (reason, text, part) => {
    const end = explainEnd("/folder", `\n${text}\n\tat a.b.Error(D.java:1)\n`, 3)
    assert.strictEqual(end.reason, reason)
    assert.include(end.message, part)
    assert.notInclude(end.message, "\n")
  })

  it("names the signal that ended a broker which had nothing to complain of", () => {
    const said = "WARNING: sun.misc.Unsafe::invokeCleaner will be removed in a future release\n"
    assert.include(explainEnd("/folder", said, 137).message, "signal 9")
  })
})

describe("loggedSince", () => {
  it("reads what this start logged, not what an earlier one did", () => {
    const folder = temporaryFolder()
    fs.mkdirSync(join(folder, "logs"))
    fs.writeFileSync(join(folder, "logs", "server.log"), "No space left on device\n")
    const positions = logPositions(folder)
    assert.strictEqual(loggedSince(folder, positions).trim(), "")
    fs.appendFileSync(join(folder, "logs", "server.log"), "later\n")
    assert.strictEqual(loggedSince(folder, positions).trim(), "later")
  })

  it("reads a log that was rotated meanwhile from its start", () => {
    const folder = temporaryFolder()
    fs.mkdirSync(join(folder, "logs"))
    fs.writeFileSync(join(folder, "logs", "server.log"), "x".repeat(1_000))
    const positions = logPositions(folder)
    fs.writeFileSync(join(folder, "logs", "server.log"), "rotated\n")
    assert.strictEqual(loggedSince(folder, positions).trim(), "rotated")
  })
})
