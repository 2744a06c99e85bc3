/** `docs/tampering.md`, made of the cases. */
import { type Case, type Outcome, tablesAsAWhole } from "./Cases.ts"

const shown = (outcome: Outcome): string => {
  if ("harmless" in outcome) return `does not matter: ${outcome.harmless}`
  if ("unseen" in outcome) return `**not found yet**: ${outcome.unseen}`
  return `found: ${outcome.found
    .map(({ at, chain, reason }) => `${chain} ${at} \`${reason}\``)
    .join(", ")}`
}

const row = ({
  isKept,
  isPacked,
  isSmall,
  other,
  restarted,
  running,
  started,
  what
}: Case): string => {
  const later = (outcome: Outcome | undefined) =>
    outcome === undefined ? "the same" : shown(outcome)
  const ofOther = other === undefined ? "" : ` The other tenant: ${shown(other)}.`
  const marks = [
    ...(isSmall === true ? ["small"] : []),
    ...(isPacked === true ? ["pack"] : []),
    ...(isKept === true ? ["kept"] : [])
  ]
  return (
    `| ${what} | ${shown(running)}${ofOther} |`
    + ` ${later(started)} | ${later(restarted)} | ${marks.join(", ")} |`
  )
}

const section = ([on, cases]: readonly [string, ReadonlyArray<Case>]): string =>
  [
    `### ${on}`,
    "",
    "| what is done | while the service runs | after a restart, before the next write |"
      + " after the next write and another restart | also |",
    "|---|---|---|---|---|",
    ...cases.map(row)
  ].join("\n")

const HEAD = `# The tamper matrix

What alk says when its tables and topics are changed behind its back. The chains are
tamper-evident: a change is found and located. alk can't prevent a change by a person who may
write to the database and to Kafka.

Each row below is a case of \`test/tampering/Cases.ts\`, and a test compares this page with it. A
case has a tenant of its own with 12 audit events, 17 trace facts and signed checkpoints. The test
tampers while the service runs and verifies both chains; starts sequencer, projection and
verification anew and verifies before anything else is written; writes an event and an execution
more, starts everything anew and verifies again. "The same" is what the column "while the service
runs" says. "Found" means that \`GET
/v1/verify\` is not valid and names this chain, sequence and reason. "Does not matter" means that
both chains are valid and signed, and that the answers about the tenant's events and executions
are byte for byte those of before; with the mark "kept" they are where something is found, too. A tenant that nothing is done to is valid all the while, and
what is written afterwards is projected and valid.

\`npm run test:all\` runs the cases that are marked "small", \`npm run test:faults\` all of them. For those
marked "pack" an evidence pack is made as well: \`alk verify\` has to call it tampered, and the
report's verdict has to be broken.`

const LIMITS = `## What can't be found, or only later

- Hashes hold no secret, so who may write to \`alk.events\` or \`alk.traces\` can append a record
  that links. \`alk.state\`, which has a MAC, says which offsets the sequencer has written: any
  other record is a break, is in no answer and no live stream, and erases nothing. A subscriber
  that reads the topic sees it all the same, and can't tell it from the sequencer's before the
  next one or the next signed checkpoint. Keep producers other than alk off its topics.
- Where \`alk.state\` is lost, nothing tells a record that links from the sequencer's: it is adopted
  if its tenant is placed in the partition and its chain leads to the signed checkpoints of before,
  and \`notices\` of every later verification say when that was and up to which offset
  (\`test/tampering/Replay.all.ts\`).
- The row of a record that did not link can be deleted from \`conflicts\` or \`fact_conflicts\`.
  The record itself stays on the topic and is in no answer.
- A receipt is the answer to its sender. Changes to stored receipts are found by who kept the
  receipt, with \`POST /v1/verify\`.
- Verification compares with the newest checkpoint. A change of an older one in the table is found
  by its reader, because the signature does not hold.
- Where \`alk.state\` is lost too, a record on \`alk.events\` with a number beyond the end of its chain
  looks like a hole in the chain: the sequencer refuses the partition at its next start and names
  the offset, until \`alk repair\` accepts it. Other records that do not link are passed over, and those of
  a chain that has no beginning in a topic that has its own (\`test/tampering/Replay.all.ts\`).
- Who holds the signing key and may write everywhere can make a new history. A checkpoint that was
  kept elsewhere does not lead to it.

## Records removed from a topic

Kafka removes records from the start of a partition only (\`DeleteRecords\`, retention). No
request removes records from its end: that takes the broker's files, or deleting the topic and
writing it again.

- The start of \`alk.events\` or \`alk.traces\` removed although they are never deleted: the
  verification says so in \`notices\`, and what is stored stays (\`test/tampering/Cuts.all.ts\`).
- The last record of \`alk.events\` lost: the head in \`alk.state\` is expected all the same, and
  the verification says \`tail_missing\` (\`test/integration/SetAside.all.ts\`).
- The start of \`alk.checkpoints\`, \`alk.receipts\`, \`alk.commands\` or \`alk.quarantine\`
  removed: both chains stay valid and signed, and the service goes on
  (\`test/tampering/Cuts.all.ts\`).
- \`alk.state\` lost as a whole: the next start rebuilds it from the other topics, the numbers
  go on, and \`notices\` say so from then on. A verification in the seconds before it is rebuilt can say that the chain is broken
  (\`test/tampering/Cuts.all.ts\`).
- \`alk.progress\` lost as a whole: it is written again, and no event is projected twice
  (\`test/tampering/Cuts.all.ts\`).
- The start of \`alk.registry\` removed: the service does not start until an operator restores it, or accepts that what
  was revoked and deleted may be back (\`alk repair registry\`, \`test/integration/Registry.integration.ts\`).
- \`alk.registry\` lost as a whole and made anew: API keys have to be made again, and checkpoints are believed of the key in
  use only, not of those before it (\`test/integration/KeyChange.all.ts\`). Back it up.

## Records that were rewritten

Who may change a broker's files can change records in place: [\`alk forget\`](forgetting.md) does, to take out
what was erased. Anything else that is changed so breaks the chain for everybody who reads the topic.

- The hash of an event does not change when its details are forgotten: \`content_hash\` covers the hash of
  the details, which stays. Kept heads, receipts, checkpoints, proofs and packs hold as before.
- A consumer that has kept \`hash\` sees the same one. One that has kept the bytes, or a hash of its own over
  them, sees another record where a later \`alk.event.erased\` (or \`execution.erased\`) names it.
- A record without its details that no erasure names is a break, on the topic as in the store: forgetting
  can't hide a change.
- Every rewriting by \`alk forget\` is a \`topics.forgotten\` in the log of \`_system\`. Who rewrites files by
  other means leaves none.`

const counted = (cases: ReadonlyArray<Case>): string => {
  const kind = (name: "found" | "harmless" | "unseen") =>
    cases.filter(({ running }) => name in running).length
  return (
    `${cases.length} cases: ${kind("found")} found and located, ${kind("harmless")} that`
    + ` do not matter, ${kind("unseen")} not found yet. ${
      cases.filter(({ isSmall }) => isSmall === true).length
    } are in the small form, ${
      cases.filter(({ isPacked }) => isPacked === true).length
    } with an evidence pack.`
  )
}

/** The whole page. */
export const pageOf = (cases: ReadonlyArray<Case>): string =>
  [
    HEAD,
    counted(cases),
    LIMITS,
    "## The cases",
    ...[...Map.groupBy(cases, ({ on }) => on)].map(section),
    "### Tables without a case for each column",
    [...tablesAsAWhole].map(([table, why]) => `- \`${table}\`: ${why}`).join("\n")
  ].join("\n\n") + "\n"
