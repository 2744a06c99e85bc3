/**
 * Hot path: measured in test/bench/Bench.ts (projection). Records of alk.events as one block of the
 * columns that they are a function of.
 */
import { isUtf8 } from "node:buffer"
import { parseJson } from "../../../domain/json/Json.ts"
import type { EventRow } from "../../../ports/EventStore.ts"
import { HexColumn, Int64Column, StringColumn, UInt32Column } from "../client/NativeBlock.ts"
import { cutEvent, EventOffsets } from "./EventSplit.ts"
import type { FastSplit } from "./fast/FastSplit.ts"

const BACKSLASH = 0x5c
/** Bytes of a text to search in, to begin with. */
const SCRATCH_BYTES = 4_096
/** Between two texts that are searched. */
const SEPARATOR = 0

/** Of what is between the marks of a JSON string. */
const unescaped = (bytes: Buffer, from: number, end: number): Buffer =>
  // Hot path: the text of one string, which can be nothing else.
  Buffer.from(parseJson(`"${bytes.toString("utf8", from, end)}"`) as string, "utf8")

const hasEscapes = (bytes: Buffer, from: number, end: number): boolean => {
  for (let at = from; at < end; at++) if (bytes[at] === BACKSLASH) return true
  return false
}

/** Rows to be inserted together; the room of the columns is kept when they are cleared. */
export class EventBlock {
  readonly #partition = new UInt32Column("kafka_partition")
  readonly #offset = new Int64Column("kafka_offset", "UInt64")
  readonly #tenant = new StringColumn("tenant_id")
  readonly #sequence = new Int64Column("sequence_number", "UInt64")
  readonly #hash = new StringColumn("hash")
  readonly #id = new StringColumn("id")
  readonly #timestamp = new Int64Column("timestamp", "DateTime64(6, 'UTC')")
  readonly #createdAt = new Int64Column("created_at", "DateTime64(6, 'UTC')")
  readonly #actorId = new StringColumn("actor_id")
  readonly #actorType = new StringColumn("actor_type")
  readonly #action = new StringColumn("action")
  readonly #resourceId = new StringColumn("resource_id")
  readonly #resourceType = new StringColumn("resource_type")
  readonly #outcome = new StringColumn("outcome")
  readonly #metadata = new StringColumn("metadata")
  readonly #search = new StringColumn("search")
  readonly #email = new StringColumn("actor_email")
  readonly #name = new StringColumn("resource_name")
  readonly #salt = new HexColumn("details_salt", 16)
  readonly #detailsHash = new HexColumn("details_hash", 32)
  readonly #contentHash = new HexColumn("content_hash", 32)
  readonly #prevHash = new HexColumn("prev_hash", 32)
  readonly #erasedAt = new Int64Column("erased_at", "DateTime64(6, 'UTC')")
  readonly #cut = new EventOffsets()
  #scratch = Buffer.allocUnsafe(SCRATCH_BYTES)

  readonly columns = [
    this.#partition,
    this.#offset,
    this.#tenant,
    this.#sequence,
    this.#hash,
    this.#id,
    this.#timestamp,
    this.#createdAt,
    this.#actorId,
    this.#actorType,
    this.#action,
    this.#resourceId,
    this.#resourceType,
    this.#outcome,
    this.#metadata,
    this.#search,
    this.#email,
    this.#name,
    this.#salt,
    this.#detailsHash,
    this.#contentHash,
    this.#prevHash,
    this.#erasedAt
  ]

  /** What the module writes, in this order. */
  readonly #cutColumns = this.columns.slice(2, -1)

  /** Adds a row; false, and nothing is added, if its bytes are no function of the columns. */
  add({ body, offset, partition }: EventRow): boolean {
    const cut = this.#cut
    if (!cutEvent(body, cut) || !isUtf8(body)) return false
    this.#partition.add(partition)
    this.#offset.add(offset)
    this.#text(this.#tenant, body, cut.tenantFrom, cut.tenantEnd)
    this.#sequence.add(cut.sequenceNumber)
    this.#hash.add(body, cut.hash, cut.hash + 64)
    this.#text(this.#id, body, cut.idFrom, cut.idEnd)
    this.#timestamp.add(cut.timestamp)
    this.#createdAt.add(cut.createdAt)
    this.#text(this.#actorId, body, cut.actor.idFrom, cut.actor.idEnd)
    this.#text(this.#actorType, body, cut.actor.typeFrom, cut.actor.typeEnd)
    this.#text(this.#action, body, cut.actionFrom, cut.actionEnd)
    this.#text(this.#resourceId, body, cut.resource.idFrom, cut.resource.idEnd)
    this.#text(this.#resourceType, body, cut.resource.typeFrom, cut.resource.typeEnd)
    this.#text(this.#outcome, body, cut.outcomeFrom, cut.outcomeEnd)
    this.#metadata.add(body, cut.metadataFrom, cut.metadataEnd)
    this.#email.add(body, cut.actor.textFrom, cut.actor.textEnd)
    this.#name.add(body, cut.resource.textFrom, cut.resource.textEnd)
    this.#salt.add(body, cut.salt)
    this.#detailsHash.add(body, cut.detailsHash)
    this.#contentHash.add(body, cut.contentHash)
    this.#prevHash.add(body, cut.prevHash)
    this.#erasedAt.add(cut.erasedAt)
    this.#addSearch(body)
    return true
  }

  /** Adds rows from `at` on, as many as the module cuts; gives where the first other one is. */
  addCut(fast: FastSplit, rows: ReadonlyArray<EventRow>, at: number): number {
    let next = at
    while (next < rows.length) {
      const done = fast.split(next)
      if (done > 0) this.#takeCut(fast, rows.slice(next, next + done))
      next += done
      if (fast.isLoaded(next)) break
    }
    return next
  }

  #takeCut(fast: FastSplit, rows: ReadonlyArray<EventRow>): void {
    for (const { offset, partition } of rows) {
      this.#partition.add(partition)
      this.#offset.add(offset)
      this.#erasedAt.add(0)
    }
    for (const [index, column] of this.#cutColumns.entries()) {
      column.append(fast.memory, fast.startOf(index), fast.endOf(index))
    }
  }

  clear(): void {
    for (const column of this.columns) column.clear()
  }

  #text(column: StringColumn, body: Buffer, from: number, end: number): void {
    if (!hasEscapes(body, from, end)) return column.add(body, from, end)
    const text = unescaped(body, from, end)
    column.add(text, 0, text.length)
  }

  /** The texts that are searched, each but the first after U+0000; ClickHouse lowers their case. */
  #addSearch(body: Buffer): void {
    const cut = this.#cut
    const { strings } = cut
    // No text grows when it is unescaped, and each has a separator.
    const most = body.length + strings.length + 8
    if (this.#scratch.length < most) this.#scratch = Buffer.allocUnsafe(2 * most)
    let at = this.#searched(body, cut.actionFrom, cut.actionEnd, 0)
    at = this.#searched(body, cut.actor.idFrom, cut.actor.idEnd, this.#separate(at))
    at = this.#searched(body, cut.actor.textFrom + 1, cut.actor.textEnd - 1, this.#separate(at))
    at = this.#searched(body, cut.resource.idFrom, cut.resource.idEnd, this.#separate(at))
    at = this.#searched(body, cut.resource.typeFrom, cut.resource.typeEnd, this.#separate(at))
    at = this.#searched(
      body,
      cut.resource.textFrom + 1,
      cut.resource.textEnd - 1,
      this.#separate(at)
    )
    if (cut.metadataEnd > cut.metadataFrom) {
      for (let index = 0; index < strings.length; index += 2) {
        at = this.#searched(body, strings[index]!, strings[index + 1]!, this.#separate(at))
      }
    }
    this.#search.add(this.#scratch, 0, at)
  }

  #separate(at: number): number {
    this.#scratch[at] = SEPARATOR
    return at + 1
  }

  #searched(body: Buffer, from: number, end: number, at: number): number {
    if (end <= from) return at
    if (!hasEscapes(body, from, end)) return at + body.copy(this.#scratch, at, from, end)
    return at + unescaped(body, from, end).copy(this.#scratch, at)
  }
}
