/**
 * Commands that an earlier version has written become, byte for byte, the records that it made of
 * them: events with their headers, receipts and state. In either format of the commands.
 */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { stateRecords } from "../../../src/actors/sequencer/Changelog.ts"
import { emptyState } from "../../../src/actors/sequencer/SequencerState.ts"
import { type ReceivedCommand, step } from "../../../src/actors/sequencer/SequencerStep.ts"
import { decodeCommand, encodeCommand } from "../../../src/domain/records/CommandBytes.ts"
import { eventsIn } from "../../support/PackedEvents.ts"
import { checkpointSigner } from "../../support/Signer.ts"

const read = (file: string): unknown =>
  JSON.parse(readFileSync(new URL(file, import.meta.url), "utf8"))

interface Said {
  readonly events: unknown
  readonly receipts: unknown
  readonly state: ReadonlyArray<{ readonly key: string; readonly value: string | null }>
}

/** Records of the state are told apart by their keys: their order within a transaction is free. */
const byKey = ({ state, ...others }: Said) => ({
  ...others,
  state: Object.fromEntries(state.map(({ key, value }) => [key, value]))
})

/** Without the one that asks for a checkpoint. */
const commands = (read("../../domain/records/commandsOfFormat1.json") as ReadonlyArray<string>)
  .map((value) => decodeCommand(Buffer.from(value), 1))
  .filter(({ kind }) => kind !== "checkpoint")

const said = (received: ReadonlyArray<ReceivedCommand>) => {
  const state = emptyState(0, 1, { dedup: 100, idempotency: 100 })
  const changes = step(state, received, checkpointSigner, "2026-11-21T12:00:01.000000Z")
  const ends = {
    eventsNext: changes.events.count,
    tracesNext: changes.traces.facts.length,
    strays: []
  }
  const records = stateRecords(state, changes, ends)
  return byKey(
    JSON.parse(
      JSON.stringify({
        events: eventsIn(changes).map(({ body, headers, tenantId }) => ({
          key: tenantId,
          headers,
          value: body
        })),
        receipts: changes.receipts,
        state: records.map(({ key, value }) => ({
          key,
          value: value === null ? null : Buffer.from(value).toString("base64")
        }))
      })
    )
  )
}

describe("commands of an earlier version", () => {
  const expected = byKey(read("stepOfFormat1.json") as Said)

  it("become the records that it made of them", () => {
    const received = commands.map((command, offset) => ({ offset, value: null, command }))
    assert.deepStrictEqual(said(received), expected)
  })

  it("become the same records where they are written in format 2", () => {
    const received = commands.map((command, offset) => {
      const { format, value } = encodeCommand(command)
      return { offset, value: null, command: decodeCommand(Buffer.from(value), format) }
    })
    assert.deepStrictEqual(said(received), expected)
  })
})
