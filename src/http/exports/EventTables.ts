/**
 * The events of a filter as a file with one line each, bounded by the head of the chain when it is
 * begun. Verifies nothing: that is what documents are for.
 */
import { Effect, Stream } from "effect"
import { Heads } from "../../actors/follower/Heads.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { defined } from "../../domain/Defined.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import { boundsOf, conditionsBeside } from "../../exports/ExportScope.ts"
import { EventStore, type StoreUnavailable } from "../../ports/EventStore.ts"
import type { TableKind } from "../../ports/ExportJob.ts"
import { caughtUp } from "../../verify/CaughtUp.ts"
import { API_VERSION } from "../Api.ts"
import { eventLines, eventTable, ocsfText } from "../events/EventText.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { readableView } from "../messages/StoreView.ts"
import { exportFileName } from "./ExportFiles.ts"
import { type Making, recordExport } from "./ExportOrder.ts"

/** A table that is on record, made as it is read. */
export interface MadeTable {
  readonly fileName: string
  readonly content: Stream.Stream<Uint8Array, StoreUnavailable>
}

const untold = () => Effect.void

/** Every event that the filter matches up to the head of now, in the order of the chain. */
export const makeTable = Effect.fnUntraced(function* (kind: TableKind, making: Making) {
  const { filter, permit = Effect.void, tenantId, told = untold } = making
  const { serviceName } = yield* ApiSettings
  const store = yield* EventStore
  const heads = yield* Heads
  const { deduplicate } = yield* readableView(yield* ProjectionProgress, tenantId)
  const generatedAt = currentTime()
  const head = yield* heads.head(tenantId)
  yield* caughtUp(tenantId, "events")
  const toSequence = Math.min(filter.toSequence ?? Infinity, head?.sequence_number ?? 0)
  const list = { tenantId, filter: { ...filter, toSequence }, order: "asc" as const }
  const { total } = yield* store.page({ ...list, offset: 0, limit: 1 }, deduplicate)
  yield* permit
  yield* recordExport(making, "events", {
    bounds: boundsOf(filter),
    filter: conditionsBeside(filter) ?? null,
    events: total,
    head_hash: head?.hash ?? null,
    generated_at: generatedAt
  })
  let done = 0
  const tell = () => told({ stage: "writing", progress: { done, total, unit: "events" } })
  yield* tell()
  const counted = Stream.tap(store.scan(list, deduplicate), (bodies) => {
    done += bodies.length
    return tell()
  })
  const content = {
    csv: () => eventTable(defined({ bom: making.bom }), counted),
    ndjson: () => eventLines(undefined, counted),
    ocsf: () => ocsfText({ serviceName, version: API_VERSION }, counted)
  }
  const made: MadeTable = {
    fileName: exportFileName(kind, serviceName, tenantId, generatedAt),
    content: content[kind]()
  }
  return made
})
