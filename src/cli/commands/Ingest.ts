/**
 * `alk ingest`: sends a file in batches, several at once, and settles them in the order of the file, so
 * that the journal always names a place before which everything is decided.
 */
import { randomUUID } from "node:crypto"
import { statSync } from "node:fs"
import { systemClock } from "../../client/Pause.ts"
import { Requests } from "../../client/Request.ts"
import { transportOptions } from "../../client/Settings.ts"
import { makeTransport, type Transport } from "../../client/Transport.ts"
import { defined } from "../../domain/Defined.ts"
import { pairOf } from "../Arguments.ts"
import { type Choice, requireContext } from "../Contexts.ts"
import { CommandFailure, EXIT, type ExitCode, usage } from "../Failure.ts"
import { cellsOf, eventsOfCsv, type Mapping } from "../ingest/Csv.ts"
import { type Entry, jsonToObject, type ToObject, toEntry } from "../ingest/Entries.ts"
import {
  Journal,
  type JournalState,
  newState,
  type Reject,
  readJournal
} from "../ingest/Journal.ts"
import { type SendParts, sendBatch } from "../ingest/SendBatch.ts"
import { contentHash, unitsOf, unitsOfFile } from "../ingest/Source.ts"
import { FORMATS, type Format, type Place, type Unit } from "../ingest/Units.ts"
import { untilInterrupted } from "../terminal/Interrupts.ts"
import { Output } from "../terminal/Output.ts"
import { count, Progress } from "../terminal/Progress.ts"

interface IngestOptions extends Choice {
  readonly format?: string
  readonly map?: ReadonlyArray<string>
  readonly set?: ReadonlyArray<string>
  readonly rejects?: string
  readonly batch: number
  readonly inFlight: number
  readonly restart?: boolean
  readonly actions?: string
  readonly numbers?: string
  readonly json?: boolean
  readonly quiet?: boolean
}

/** Bytes of one request: proxies take a mebibyte, unless they are told otherwise. */
const BATCH_BYTES = 512 * 1024

const interrupted = (exitCode: ExitCode): CommandFailure =>
  new CommandFailure(exitCode, "interrupted", "call it again: it goes on where it was")

/** What keeps count of a file, or of standard input. */
interface Ledger {
  readonly settle: (place: Place, stored: number, rejects: ReadonlyArray<Reject>) => void
  readonly save: () => void
  readonly state: Pick<JournalState, "offset" | "rejected" | "stored">
}

const formatOf = (file: string, given: string | undefined): Format => {
  const ending = /\.(\w+)$/.exec(file)?.[1]?.toLowerCase()
  const format = given ?? (ending === "json" || ending === "csv" ? ending : "ndjson")
  if (FORMATS.includes(format as Format)) return format as Format
  throw usage(`--format: must be ${FORMATS.join(", ")}, is ${JSON.stringify(format)}`)
}

const mappingOf = ({ map = [], set = [] }: IngestOptions): Mapping => ({
  columns: Object.fromEntries(map.map((one) => pairOf("--map", one))),
  values: Object.fromEntries(set.map((one) => pairOf("--set", one)))
})

/** Events of a header and its records. */
const csvToObject = (header: Unit, options: IngestOptions): ToObject => {
  const columns = cellsOf(header.text.replace(/^\ufeff/, ""))
  const toEvent = eventsOfCsv(columns, mappingOf(options))
  return (text) => {
    const value = toEvent(text)
    return { text: JSON.stringify(value), value }
  }
}

interface Work {
  readonly units: AsyncGenerator<Unit, void>
  readonly toObject: ToObject
  readonly identity: string
  readonly ledger: Ledger
  /** Bytes in all; undefined if that is not known. */
  readonly size: number | undefined
}

const headerOf = async (units: AsyncGenerator<Unit, void>): Promise<Unit> => {
  const { done, value } = await units.next()
  if (done === true) throw usage("the file has no header", "its first line names the columns")
  return value
}

const workOfInput = async (format: Format, options: IngestOptions): Promise<Work> => {
  const units = unitsOf(process.stdin, format)
  const toObject = format === "csv" ? csvToObject(await headerOf(units), options) : jsonToObject
  const state = { offset: 0, stored: 0, rejected: 0 }
  const settle: Ledger["settle"] = ({ offset }, stored, rejects) => {
    state.offset = offset
    state.stored += stored
    state.rejected += rejects.length
    for (const one of rejects) process.stderr.write(`${JSON.stringify(one)}\n`)
  }
  const ledger = { settle, save: () => {}, state }
  return { units, toObject, identity: randomUUID(), ledger, size: undefined }
}

/** What was kept of the file, if it is still the same; or a beginning. */
const stateOfFile = async (
  file: string,
  { format, target }: Pick<JournalState, "format" | "target">,
  isNew: boolean
): Promise<JournalState> => {
  const kept = isNew ? undefined : readJournal(file)
  const { size } = statSync(file)
  if (kept === undefined) {
    return newState({ identity: await contentHash(file, size), size, format, target })
  }
  if (kept.target !== target) {
    throw new CommandFailure(
      EXIT.failed,
      `${file}: was begun for ${kept.target}, and this is ${target}`,
      "--restart sends it from its beginning"
    )
  }
  const isSame = size >= kept.size && (await contentHash(file, kept.size)) === kept.identity
  if (isSame && kept.format === format) return kept
  throw new CommandFailure(
    EXIT.failed,
    `${file}: is not the file that was begun, or has another format`,
    "--restart sends it from its beginning"
  )
}

const workOfFile = async (
  file: string,
  begun: Pick<JournalState, "format" | "target">,
  options: IngestOptions
): Promise<Work> => {
  const { format } = begun
  const state = await stateOfFile(file, begun, options.restart === true)
  const { size } = statSync(file)
  let toObject: ToObject = jsonToObject
  let place: Place = state
  if (format === "csv") {
    const header = await headerOf(unitsOfFile(file, format, size))
    toObject = csvToObject(header, options)
    if (state.offset < header.end.offset) place = header.end
  }
  const ledger = new Journal(file, options.rejects ?? `${file}.alk-rejects.ndjson`, state)
  const units = unitsOfFile(file, format, size, place)
  return { units, toObject, identity: state.identity, ledger, size }
}

/** Entries in batches of bounded numbers and bytes. */
async function* batchesOf(
  { identity, toObject, units }: Work,
  itemsMax: number
): AsyncGenerator<ReadonlyArray<Entry>, void> {
  let batch: Array<Entry> = []
  let bytes = 0
  for await (const unit of units) {
    const length = Buffer.byteLength(unit.text)
    if (batch.length === itemsMax || (batch.length > 0 && bytes + length > BATCH_BYTES)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(toEntry(unit, identity, toObject))
    bytes += length
  }
  if (batch.length > 0) yield batch
}

interface Sent {
  readonly batch: ReadonlyArray<Entry>
  readonly rejects: Promise<ReadonlyArray<Reject>>
}

/** Sends all batches; calls `settled` after each, in the order of the file. */
const sendAll = async (
  parts: SendParts,
  work: Work,
  { batch: itemsMax, inFlight }: IngestOptions,
  settled: () => void
): Promise<void> => {
  const waiting: Array<Sent> = []
  const settleFirst = async (): Promise<void> => {
    const { batch, rejects } = waiting.shift()!
    const refused = await rejects
    work.ledger.settle(batch.at(-1)!.end, batch.length - refused.length, refused)
    settled()
  }
  for await (const batch of batchesOf(work, itemsMax)) {
    const rejects = sendBatch(parts, batch)
    // It is awaited in its turn; until then its failure is no unhandled one.
    rejects.catch(() => {})
    waiting.push({ batch, rejects })
    if (waiting.length >= inFlight) await settleFirst()
  }
  while (waiting.length > 0) await settleFirst()
}

const progressLine = ({ ledger, size }: Work, startedAt: number, before: number): string => {
  const { offset, rejected, stored } = ledger.state
  const seconds = (performance.now() - startedAt) / 1_000
  const rate = count((stored + rejected - before) / seconds)
  const part = size === undefined ? "" : `${Math.floor((100 * offset) / Math.max(size, 1))} %, `
  return `${part}${count(stored)} stored, ${count(rejected)} refused, ${rate} a second`
}

/** Sends the work, and says how far it is; the journal is saved however it ends. */
const run = async (
  transport: Transport,
  work: Work,
  options: IngestOptions,
  output: Output
): Promise<void> => {
  const { ledger } = work
  const progress = new Progress(options.quiet === true)
  const before = ledger.state.stored + ledger.state.rejected
  if (before > 0) output.note(`going on after ${count(before)} events`)
  const startedAt = performance.now()
  const end = new AbortController()
  const signal = AbortSignal.any([untilInterrupted(interrupted), end.signal])
  let isWaiting = false
  const onRetry = ({ message }: Error) => {
    if (!isWaiting) output.note(`alk: ${message}; trying again`)
    isWaiting = true
  }
  try {
    const query = defined({ actions: options.actions, numbers: options.numbers })
    await sendAll({ transport, query, signal, onRetry }, work, options, () => {
      isWaiting = false
      progress.at(() => progressLine(work, startedAt, before))
    })
  } finally {
    // The requests that are still on their way end with it.
    end.abort()
    ledger.save()
    progress.end(progressLine(work, startedAt, before))
  }
}

/** `alk ingest`. */
export const ingest = async (file: string, options: IngestOptions): Promise<void> => {
  const format = formatOf(file, options.format)
  const context = requireContext(options)
  const transport = makeTransport(transportOptions(context))
  // A wrong key or address is found before anything is read.
  const me = await new Requests(transport, systemClock).request("GET /v1/me")
  const target = `tenant ${me.tenant_id} at ${context.url.replace(/\/+$/, "")}`
  const work = await (file === "-"
    ? workOfInput(format, options)
    : workOfFile(file, { format, target }, options))
  const output = new Output(options)
  await run(transport, work, options, output)
  const { rejected, stored } = work.ledger.state
  if (!output.isHuman) await output.document({ stored, rejected })
  if (rejected === 0) return
  const where = file === "-" ? "above" : (options.rejects ?? `${file}.alk-rejects.ndjson`)
  throw new CommandFailure(EXIT.failed, `${count(rejected)} events were refused: ${where}`)
}
