/**
 * What was rewritten in a log folder: one file beside the partitions, written before each segment is
 * replaced, so that a rewriting which was ended at any point can be counted. It holds counts only.
 */
import * as fs from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { ForgettingRun } from "../../../domain/forgetting/ForgettingRun.ts"
import { recordDecoder } from "../../../domain/json/RecordDecoder.ts"
import { syncFolder } from "./SegmentFile.ts"

/** Name of the file. */
export const JOURNAL_FILE = "alk-forgotten.json"

const read = recordDecoder(Schema.Struct({ runs: Schema.Array(ForgettingRun) }), JOURNAL_FILE)

/** The runs that alk's log does not have yet, oldest first. @throws RecordUnreadable */
export const readJournal = (folder: string): ReadonlyArray<ForgettingRun> => {
  const file = join(folder, JOURNAL_FILE)
  return fs.existsSync(file) ? read(fs.readFileSync(file, "utf8")).runs : []
}

/** It is there whole or not at all, also after a power failure; without runs it goes. */
export const writeJournal = (folder: string, runs: ReadonlyArray<ForgettingRun>): void => {
  const file = join(folder, JOURNAL_FILE)
  if (runs.length === 0) return fs.rmSync(file, { force: true })
  const aside = `${file}.partial`
  const descriptor = fs.openSync(aside, "w", 0o600)
  try {
    fs.writeSync(descriptor, `${JSON.stringify({ runs })}\n`)
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
  fs.renameSync(aside, file)
  syncFolder(folder)
}
