/** Commands that verify the log and hand it out: their names, options and examples. */
import type { Command } from "commander"
import { collect } from "../Arguments.ts"
import { declare, GROUPS, ofService, proposing, withFilters, withResult } from "./Declare.ts"

const declareVerify = (program: Command): void => {
  const verify = declare(program, {
    usage: "verify [pack]",
    description: "Check an evidence pack offline, or the chains of the service",
    group: GROUPS.verify,
    examples: [
      "alk verify pack.zip --public-key keys.json",
      "alk verify pack.zip --checkpoint kept.txt --require-origin",
      "alk verify --service --from -24h"
    ],
    notes: [
      "Exit codes of a pack: 0 authentic or consistent, 1 tampered, 2 unreadable, 3 not authentic with",
      "--require-origin. Of the service: 0 both chains hold, 1 a break was found or not all was checked."
    ].join("\n")
  })
    .option("--service", "the service recomputes its chains from what is stored")
    .option("--from <time>", "with --service: RFC 3339, or from now")
    .option("--to <time>", "with --service: RFC 3339, or from now")
    .option("--public-key <key>", "of a pack: a key that you know, or a file of it", collect)
    .option("--checkpoint <file>", "of a pack: a checkpoint that you kept", collect)
    .option("--require-origin", "of a pack: exit code 3 unless it is authentic")
  withResult(ofService(verify)).action(async (pack, options) =>
    (await import("../commands/Verify.ts")).verify(pack, options)
  )
}

/** Beside the functions that fetch them (commands/Export.ts), which are loaded only to run. */
export const EXPORT_KINDS = ["pdf", "pack", "csv", "parquet", "ndjson", "ocsf"] as const

const declareExport = (program: Command): void => {
  const exporting = declare(program, {
    usage: "export <kind>",
    description: "Write a pdf, pack, csv, parquet, ndjson or ocsf of the events that match",
    group: GROUPS.verify,
    examples: [
      "alk export pdf --from 2026-01-01T00:00:00Z -o report.pdf",
      "alk export pack -o evidence.zip && alk verify evidence.zip",
      "alk export csv --action 'user.*' > users.csv",
      "alk export ocsf --from -24h -o for-siem.ndjson"
    ],
    notes:
      "ocsf is a line of JSON for each event, in the form of the Open Cybersecurity Schema Framework."
  }).option("--no-pdf", "of a pack: leave the report out")
  withFilters(ofService(proposing(exporting, EXPORT_KINDS)))
    .option("-q, --quiet", "nothing on standard error but errors")
    .option("-o, --output <file>", "write into a file, which is there once it is whole")
    .action(async (kind, options) =>
      (await import("../commands/Export.ts")).exportFile(kind, options)
    )
}

const declareChain = (program: Command): void => {
  const chain = program
    .command("chain")
    .description("Keep what the service has signed")
    .helpGroup(GROUPS.verify)
  const keep = declare(chain, {
    usage: "keep <folder>",
    description: "Fetch the signed checkpoints, check them against the last ones, and keep them",
    examples: [
      "alk chain keep ~/alk-witness",
      "7 * * * *  alk chain keep /var/lib/alk-witness --quiet"
    ],
    notes: [
      "For cron: a witness on your own disk. Of each chain it checks the signature, and that the tree",
      "only adds to the one that was kept last. Exit code 1 if the history was rewritten, a key was",
      "replaced without an endorsement, or a replaced key has signed what it may not sign any more.",
      "The keys of the first time are trusted from then on."
    ].join("\n")
  })
  withResult(ofService(keep)).action(async (folder, options) =>
    (await import("../commands/ChainKeep.ts")).keepChain(folder, options)
  )
}

export const declareEvidence = (program: Command): void => {
  declareVerify(program)
  declareExport(program)
  declareChain(program)
}
