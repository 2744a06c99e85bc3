/** `alk verify`: a pack on the disk by the verifier of this release, or the chains of the service. */
import type { Client } from "../../client/Client.ts"
import type { VerifyProgress, VerifyReport } from "../../client/gen/Api.d.ts"
import { cutOff, jsonLines, NDJSON_TYPE } from "../../client/JsonLines.ts"
import { Usage, verify as verifyPack } from "../../exports/checker/Verify.ts"
import type { Choice } from "../Contexts.ts"
import { CommandFailure, EXIT, usage } from "../Failure.ts"
import { connect } from "../Session.ts"
import { type Output, type OutputOptions, withOutput } from "../terminal/Output.ts"
import { count, Progress } from "../terminal/Progress.ts"
import { plain } from "../terminal/Table.ts"

interface VerifyOptions extends OutputOptions, Choice {
  readonly service?: boolean
  readonly from?: string
  readonly to?: string
  readonly publicKey?: ReadonlyArray<string>
  readonly checkpoint?: ReadonlyArray<string>
  readonly requireOrigin?: boolean
}

/** Breaks that are written out. */
const BREAKS_SHOWN = 10

const packArguments = (
  pack: string,
  options: VerifyOptions,
  isHuman: boolean
): ReadonlyArray<string> => [
  pack,
  ...(options.publicKey ?? []).flatMap((key) => ["--public-key", key]),
  ...(options.checkpoint ?? []).flatMap((file) => ["--checkpoint", file]),
  ...(options.requireOrigin === true ? ["--require-origin"] : []),
  ...(isHuman ? [] : ["--json"])
]

const checkPack = (pack: string, options: VerifyOptions): Promise<void> =>
  withOutput(options, async (output) => {
    const args = packArguments(pack, options, output.isHuman)
    const { exitCode, text } = await verifyPack(args).catch((error: unknown) => {
      throw error instanceof Usage ? usage(error.message, "alk verify --help") : error
    })
    await output.write(text)
    process.exitCode = exitCode
  })

/** Milliseconds until the first line: the service says something of a check every second. */
const FIRST_LINE_MS = 10 * 60_000
const CHAINS = ["events", "traces"] as const

/** What a report says of one chain, in one line. */
export const reportLine = (chain: string, report: VerifyReport): string => {
  const { assurance, breaks_total, duration_ms, events_checked, pruned, status } = report
  const unit = chain === "events" ? "events" : "facts"
  const what = {
    valid: "every link and hash holds",
    empty: "nothing to check",
    incomplete: `only a part was checked: give --from and --to`,
    broken: `${count(breaks_total)} breaks`
  }[status]
  const ms = `${count(duration_ms)} ms`
  const before = pruned === undefined ? "" : `; pruned up to ${count(pruned.up_to_sequence)}`
  return `${chain}: ${status}, ${count(events_checked)} ${unit} in ${ms}; ${what} (${assurance})${before}`
}

const noteBreaks = (output: Output, { breaks, breaks_total }: VerifyReport): void => {
  for (const { actual, expected, reason, sequence_number } of breaks.slice(0, BREAKS_SHOWN)) {
    output.note(plain(`  number ${sequence_number}: ${reason}: expected ${expected}, is ${actual}`))
  }
  const more = breaks_total - Math.min(breaks.length, BREAKS_SHOWN)
  if (more > 0) output.note(`  and ${count(more)} more; --json lists them`)
}

/** What the service says of a chain that is not a break of it. */
export const noticeLines = ({ notices = [] }: VerifyReport): ReadonlyArray<string> =>
  notices.map((notice) => plain(`  not established: ${notice}`))

/** How far the check of a chain is, in one line. */
export const progressLine = (
  chain: string,
  { breaks_total, events_checked, of, up_to_sequence }: VerifyProgress,
  seconds: number
): string => {
  const unit = chain === "events" ? "events" : "facts"
  const rate = count(events_checked / seconds)
  const broken = breaks_total === 0 ? "" : `, ${count(breaks_total)} breaks`
  return (
    `${chain}: ${count(events_checked)} ${unit} recomputed, up to ${count(up_to_sequence)} of `
    + `${count(of)}, ${rate} a second${broken}`
  )
}

/** The report on a chain; the service says how far it is meanwhile. */
const reportOf = async (
  client: Client,
  chain: "events" | "traces",
  { from, quiet, to }: VerifyOptions
): Promise<VerifyReport> => {
  const response = await client.open("GET /v1/verify", {
    query: { chain, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) },
    accept: NDJSON_TYPE,
    timeoutMs: FIRST_LINE_MS
  })
  const progress = new Progress(quiet === true)
  const startedAt = performance.now()
  try {
    for await (const line of jsonLines(response)) {
      const said = line as VerifyProgress | VerifyReport
      if ("status" in said) return said
      progress.at(() => progressLine(chain, said, (performance.now() - startedAt) / 1_000))
    }
  } finally {
    progress.end()
  }
  throw cutOff()
}

const checkService = async (options: VerifyOptions): Promise<void> => {
  const client = await connect(options)
  const isWhole = await withOutput(options, async (output) => {
    let holds = true
    for (const chain of CHAINS) {
      const report = await reportOf(client, chain, options)
      holds &&= report.valid && report.status !== "incomplete"
      output.note(reportLine(chain, report))
      noteBreaks(output, report)
      for (const line of noticeLines(report)) output.note(line)
      if (!output.isHuman) await output.document(report)
    }
    if (holds && output.isHuman) await output.write("both chains hold\n")
    return holds
  })
  if (isWhole) return
  const next = "docs/tampering.md says what each reason means; keep packs and checkpoints you have"
  throw new CommandFailure(EXIT.failed, "the chains do not hold, or not all was checked", next)
}

/** `alk verify`. */
export const verify = async (pack: string | undefined, options: VerifyOptions): Promise<void> => {
  if (options.service === true && pack === undefined) return checkService(options)
  if (options.service !== true && pack !== undefined) return checkPack(pack, options)
  throw usage("give the file of a pack, or --service", "alk verify --help")
}
