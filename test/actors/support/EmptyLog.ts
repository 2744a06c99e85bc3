/** A log of one partition in which nothing is yet, so that a test says what each fetch brings. */
import { Effect, Layer } from "effect"
import { Placement } from "../../../src/domain/registry/Placement.ts"
import { EventLog, type LogReader } from "../../../src/ports/EventLog.ts"

export const emptyLog = (
  fetch: LogReader["fetch"],
  onAppended: EventLog["Service"]["onAppended"] = () => Effect.void
) =>
  Layer.mock(EventLog, {
    partitions: 1,
    bootstrap: "nowhere",
    partitionOf: () => 0,
    placement: Effect.sync(() => new Placement(1)),
    bounds: () => Effect.succeed({ start: 0, end: 0 }),
    ends: (positions) => Effect.succeed(positions.map(() => 0)),
    appender: Effect.never,
    onAppended,
    reader: Effect.succeed({ fetch })
  })
