/**
 * The tamper matrix: what is done to a table, to a topic or to both, and what has to become of it.
 * Each case has a tenant of its own. `docs/tampering.md` is made of this list.
 */
import { makeCheckpoint, signerOf } from "../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../src/domain/chain/MerkleTree.ts"
import { ERASURE_ACTION, ERASURE_RESOURCE_TYPE } from "../../src/domain/events/Erasure.ts"
import type { TopicKind } from "../../src/domain/records/Topics.ts"
import { parseFact, storeFact } from "../../src/domain/traces/FactText.ts"
import type { FactCore, TraceFact } from "../../src/domain/traces/TraceFact.ts"
import type { BreakReason } from "../../src/verify/Verifier.ts"
import type { RawRecord } from "../support/Log.ts"
import { Chain } from "../verify/support/Chains.ts"
import { type Columns, EVENTS, FACTS, type Subject } from "./World.ts"

/** Where a break has to be named, and why; other breaks that follow from it are allowed. */
export interface Found {
  readonly chain: "events" | "traces"
  readonly at: number
  readonly reason: BreakReason
}

/** What verification says: breaks at these places, or nothing, because it does not matter. */
export type Outcome =
  | { readonly found: ReadonlyArray<Found> }
  | {
      /** Why nothing has to be found; every answer is as before. */
      readonly harmless: string
    }
  | {
      /** What can't be found yet, and why. */
      readonly unseen: string
    }

/** Everything that a case works with. */
export interface Target {
  readonly database: string
  readonly columns: Columns
  /** The tenant of the case, and one whose data may take part. */
  readonly own: Subject
  readonly other: Subject
  /** What the topics hold when the case begins. */
  readonly records: ReadonlyMap<TopicKind, ReadonlyArray<RawRecord>>
}

export interface Case {
  /** What is tampered with: a table or a topic, or both. */
  readonly on: string
  readonly what: string
  /** Column, if the case changes one. */
  readonly column?: string
  /** Records that another producer appends. */
  readonly records?: (target: Target) => ReadonlyArray<readonly [TopicKind, RawRecord]>
  /** Statements that somebody with access to the database runs, after the records are projected. */
  readonly statements?: (target: Target) => ReadonlyArray<string>
  readonly running: Outcome
  /** Everything has been started anew, and nothing was written meanwhile, if it differs. */
  readonly started?: Outcome
  /** Once more was written and everything has been started anew again, if it differs. */
  readonly restarted?: Outcome
  /** Every answer is as before, although it is found. */
  readonly isKept?: boolean
  /** Of the other tenant; nothing otherwise. */
  readonly other?: Outcome
  /** Event 3 and execution x2 of the tenant are erased. */
  readonly isErased?: boolean
  /** Part of the small form, which `npm run test:all` runs. */
  readonly isSmall?: boolean
  /** An evidence pack is made too: `alk verify` has to call it tampered, and the report broken. */
  readonly isPacked?: boolean
}

const found = (
  chain: Found["chain"],
  ...places: ReadonlyArray<readonly [at: number, reason: BreakReason]>
): Outcome => ({ found: places.map(([at, reason]) => ({ chain, at, reason })) })
const harmless = (why: string): Outcome => ({ harmless: why })
const unseen = (why: string): Outcome => ({ unseen: why })

const literal = (text: string): string =>
  `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`

type Changes = Readonly<Record<string, string>>

const update = (table: string, where: string, changes: Changes): string =>
  `ALTER TABLE ${table} UPDATE `
  + Object.entries(changes)
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ")
  + ` WHERE ${where}`

const remove = (table: string, where: string): string =>
  `ALTER TABLE ${table} DELETE WHERE ${where}`

/** Rows once more, changed, with every column as it stands. */
const copy = (
  { columns, database }: Target,
  table: string,
  where: string,
  changes: Changes = {}
): string => {
  const names = columns
    .get(table)!
    .filter(({ kind }) => kind !== "MATERIALIZED" && kind !== "ALIAS")
    .map(({ name }) => name)
  return (
    `INSERT INTO ${database}.${table} (${names.join(", ")})`
    + ` SELECT ${names.map((name) => changes[name] ?? name).join(", ")}`
    + ` FROM ${database}.${table} WHERE ${where}`
  )
}

/** Key columns can't be updated: a changed copy, and the original deleted. */
const move = (target: Target, table: string, where: string, changes: Changes) => [
  copy(target, table, where, changes),
  remove(
    `${target.database}.${table}`,
    `${where} AND NOT (${Object.entries(changes)
      .map(([name, value]) => `${name} = ${value}`)
      .join(" AND ")})`
  )
]

const EVENT = 5
const eventRow = ({ own: { tenantId } }: Target, sequence: number = EVENT): string =>
  `tenant_id = '${tenantId}' AND sequence_number = ${sequence}`
const bodyAs = ({ own }: Target, chain: "events" | "facts", sequence: number): string =>
  literal(own[chain][sequence - 1]!)

const PLACE =
  "It says where the row came from. No answer is made of it, and the chain is checked"
  + " by the bytes."

/** Columns of `events`; those in `moved` are part of the table's key. */
const eventColumns: ReadonlyArray<readonly [string, string, Outcome, Partial<Case>?]> = [
  ["kafka_partition", "kafka_partition + 1", harmless(PLACE)],
  [
    "kafka_offset",
    "9223372036854775808",
    harmless(PLACE),
    {
      restarted: harmless("The next start sets the row aside, and the chain has it again.")
    }
  ],
  ["id", "'other'", found("events", [EVENT, "content_mismatch"])],
  ["timestamp", "timestamp + 1", found("events", [EVENT, "content_mismatch"])],
  ["created_at", "created_at + 1", found("events", [EVENT, "hash_mismatch"])],
  ["actor_id", "'other'", found("events", [EVENT, "content_mismatch"]), { isSmall: true }],
  ["actor_type", "'system'", found("events", [EVENT, "content_mismatch"])],
  ["action", "'other'", found("events", [EVENT, "content_mismatch"])],
  ["resource_id", "'other'", found("events", [EVENT, "content_mismatch"])],
  ["resource_type", "'other'", found("events", [EVENT, "content_mismatch"])],
  [
    "outcome",
    "'failure'",
    found("events", [EVENT, "content_mismatch"]),
    { isSmall: true, isPacked: true }
  ],
  ["metadata", "'{}'", found("events", [EVENT, "content_mismatch"])],
  ["search", "'nothing'", found("events", [EVENT, "content_mismatch"])],
  ["actor_email", `'"other@example.com"'`, found("events", [EVENT, "content_mismatch"])],
  ["resource_name", `'"other"'`, found("events", [EVENT, "content_mismatch"])],
  ["details_salt", "reverse(details_salt)", found("events", [EVENT, "content_mismatch"])],
  ["details_hash", "reverse(details_hash)", found("events", [EVENT, "content_mismatch"])],
  ["content_hash", "reverse(content_hash)", found("events", [EVENT, "content_mismatch"])],
  ["prev_hash", "reverse(prev_hash)", found("events", [EVENT, "prev_hash_mismatch"])],
  [
    "erased_at",
    "toDateTime64('2026-11-22 08:00:00', 6, 'UTC')",
    found("events", [EVENT, "content_mismatch"]),
    { isSmall: true }
  ]
]

const keysOfEvents: ReadonlyArray<
  readonly [string, (target: Target) => string, Outcome, Partial<Case>?]
> = [
  ["version", () => "toUInt8(1)", found("events", [EVENT, "content_mismatch"])],
  [
    "tenant_id",
    ({ other }) => `'${other.tenantId}'`,
    found("events", [EVENT, "sequence_gap"]),
    {
      other: found("events", [EVENT, "hash_mismatch"])
    }
  ],
  ["sequence_number", () => "toUInt64(7)", found("events", [EVENT, "sequence_gap"])],
  ["hash", () => "repeat('e', 64)", found("events", [EVENT, "hash_mismatch"])]
]

const updates = (
  table: string,
  row: (target: Target) => string,
  columns: typeof eventColumns
): ReadonlyArray<Case> =>
  columns.map(([column, value, running, more]) => ({
    on: table,
    what: `\`${column}\` changed`,
    column,
    statements: (target) => [
      update(`${target.database}.${table}`, row(target), { [column]: value })
    ],
    running,
    ...more
  }))

const moves = (
  table: string,
  row: (target: Target) => string,
  columns: typeof keysOfEvents
): ReadonlyArray<Case> =>
  columns.map(([column, value, running, more]) => ({
    on: table,
    what: `\`${column}\` changed`,
    column,
    statements: (target) => move(target, table, row(target), { [column]: value(target) }),
    running,
    ...more
  }))

const addedEvent =
  (sequence: string, changes: Changes = {}) =>
  (target: Target) => [
    copy(target, "events", eventRow(target), { sequence_number: sequence, ...changes })
  ]

const eventRows: ReadonlyArray<Case> = [
  {
    on: "events",
    what: "row deleted",
    isPacked: true,
    isSmall: true,
    statements: (target) => [remove(`${target.database}.events`, eventRow(target))],
    running: found("events", [EVENT, "sequence_gap"])
  },
  {
    on: "events",
    what: "the last row deleted",
    isPacked: true,
    isSmall: true,
    statements: (target) => [remove(`${target.database}.events`, eventRow(target, EVENTS))],
    running: found("events", [EVENTS, "tail_missing"]),
    restarted: found("events", [EVENTS, "sequence_gap"])
  },
  {
    on: "events",
    what: "all rows deleted",
    statements: ({ database, own }) => [
      remove(`${database}.events`, `tenant_id = '${own.tenantId}'`)
    ],
    running: found("events", [1, "tail_missing"]),
    restarted: found("events", [1, "sequence_gap"])
  },
  {
    on: "events",
    what: "row duplicated",
    isPacked: true,
    isSmall: true,
    statements: (target) => [copy(target, "events", eventRow(target))],
    running: found("events", [EVENT, "duplicate_sequence"])
  },
  {
    on: "events",
    what: "row added at 0",
    isPacked: true,
    isSmall: true,
    statements: addedEvent("toUInt64(0)"),
    running: found("events", [0, "duplicate_sequence"])
  },
  {
    on: "events",
    what: "row added at head + 1",
    isPacked: true,
    isSmall: true,
    statements: addedEvent(`toUInt64(${EVENTS + 1})`),
    running: found("events", [EVENTS + 1, "hash_mismatch"])
  },
  {
    on: "events",
    what: "row added at 2^63",
    statements: addedEvent("toUInt64(9223372036854775808)"),
    running: found("events", [EVENTS + 1, "hash_mismatch"]),
    restarted: found("events", [EVENTS + 2, "hash_mismatch"])
  },
  {
    on: "events",
    what: "second version",
    isPacked: true,
    isSmall: true,
    statements: (target) => [
      copy(target, "events", eventRow(target), {
        version: "toUInt8(1)",
        outcome: "'failure'"
      })
    ],
    running: found("events", [EVENT, "content_mismatch"])
  },
  {
    on: "events",
    what: "row moved to another tenant",
    statements: (target) =>
      move(target, "events", eventRow(target), { tenant_id: `'${target.other.tenantId}'` }),
    running: found("events", [EVENT, "sequence_gap"]),
    other: found("events", [EVENT, "hash_mismatch"])
  },
  {
    on: "events",
    what: "details of an erased event replaced by others",
    isErased: true,
    isSmall: true,
    statements: (target) => [
      update(`${target.database}.events`, eventRow(target, 3), {
        erased_at: "toDateTime64(0, 6, 'UTC')",
        metadata: `'{"other":true}'`
      })
    ],
    running: found("events", [3, "content_mismatch"])
  },
  {
    on: "events",
    what: "mark of an erased event removed before its details are purged",
    isErased: true,
    statements: (target) => [
      update(`${target.database}.events`, eventRow(target, 3), {
        erased_at: "toDateTime64(0, 6, 'UTC')"
      })
    ],
    running: unseen(
      "The event is what it was. Its details are purged some minutes after the erasure; from then"
        + " on such a change is found."
    )
  }
]

/** The start of span s1 in execution x1. */
const FACT = 7
/** The start of span s2 in execution x2, which is erased. */
const ERASED_FACT = 8
const factRow = ({ own: { tenantId } }: Target, sequence: number = FACT): string =>
  `tenant_id = '${tenantId}' AND chain_sequence = ${sequence}`

const factColumns: typeof eventColumns = [
  ["kafka_partition", "kafka_partition + 1", harmless(PLACE)],
  [
    "kafka_offset",
    "9223372036854775808",
    harmless(PLACE),
    {
      restarted: harmless("The next start sets the row aside, and the chain has it again.")
    }
  ],
  [
    "body",
    `replaceOne(body, 'TOOL_CALL', 'LLM_CALL')`,
    found("traces", [FACT, "content_mismatch"]),
    { isSmall: true, isPacked: true }
  ],
  ["chain_sequence", "999", found("traces", [FACT, "sequence_gap"])],
  ["type", "'span.ended'", found("traces", [FACT, "content_mismatch"])],
  ["span_id", "'other'", found("traces", [FACT, "content_mismatch"]), { isSmall: true }],
  ["sequence_number", "sequence_number + 1", found("traces", [FACT, "content_mismatch"])],
  ["agent_id", "'other'", found("traces", [FACT, "content_mismatch"])],
  ["status", "'FAILED'", found("traces", [FACT, "content_mismatch"])],
  ["started_at", "started_at + 1", found("traces", [FACT, "content_mismatch"])],
  ["ended_at", "ended_at + 1", found("traces", [FACT, "content_mismatch"])],
  ["payload_hash", "'other'", found("traces", [FACT, "content_mismatch"])],
  [
    "mac",
    "repeat('0', 16)",
    harmless(
      "No answer is made of it. A sequencer goes on with the execution only by facts that have the"
        + " right one."
    )
  ],
  [
    "summary",
    "tuple(0, 1, 1, 0.5, 'other', '', '', '')",
    found("traces", [FACT, "content_mismatch"])
  ]
]

const keysOfFacts: typeof keysOfEvents = [
  ["version", () => "toUInt8(1)", found("traces", [FACT, "content_mismatch"])],
  [
    "tenant_id",
    ({ other }) => `'${other.tenantId}'`,
    found("traces", [FACT, "sequence_gap"]),
    {
      other: found("traces", [FACT, "content_mismatch"])
    }
  ],
  ["scope", () => "toUInt8(2)", found("traces", [FACT, "content_mismatch"])],
  ["execution_id", () => "'x3'", found("traces", [FACT, "content_mismatch"]), { isSmall: true }],
  ["fact_number", () => "toUInt64(9)", found("traces", [FACT, "content_mismatch"])],
  ["hash", () => "repeat('e', 64)", found("traces", [FACT, "content_mismatch"])]
]

const addedFact = (sequence: string) => (target: Target) => [
  copy(target, "facts", factRow(target), { chain_sequence: sequence, hash: "reverse(hash)" })
]

const factRows: ReadonlyArray<Case> = [
  {
    on: "facts",
    what: "row deleted",
    isPacked: true,
    isSmall: true,
    statements: (target) => [remove(`${target.database}.facts`, factRow(target))],
    running: found("traces", [FACT, "sequence_gap"])
  },
  {
    on: "facts",
    what: "the last row deleted",
    isSmall: true,
    statements: (target) => [remove(`${target.database}.facts`, factRow(target, FACTS))],
    running: found("traces", [FACTS, "tail_missing"]),
    restarted: found("traces", [FACTS, "sequence_gap"])
  },
  {
    on: "facts",
    what: "all rows of an execution deleted",
    isPacked: true,
    isSmall: true,
    statements: ({ database, own }) => [
      remove(`${database}.facts`, `tenant_id = '${own.tenantId}' AND execution_id = 'x1'`)
    ],
    running: found("traces", [1, "sequence_gap"])
  },
  {
    on: "facts",
    what: "all rows of an execution deleted, and of the index",
    statements: ({ database, own }) =>
      ["facts", "span_ids"].map((table) =>
        remove(`${database}.${table}`, `tenant_id = '${own.tenantId}' AND execution_id = 'x1'`)
      ),
    running: found("traces", [1, "sequence_gap"])
  },
  {
    on: "facts",
    what: "row duplicated",
    isPacked: true,
    isSmall: true,
    statements: (target) => [copy(target, "facts", factRow(target))],
    running: found("traces", [FACT, "duplicate_sequence"])
  },
  {
    on: "facts",
    what: "row added at 0",
    isPacked: true,
    isSmall: true,
    statements: addedFact("toUInt64(0)"),
    running: found("traces", [0, "duplicate_sequence"])
  },
  {
    on: "facts",
    what: "row added at head + 1",
    statements: addedFact(`toUInt64(${FACTS + 1})`),
    running: found("traces", [FACTS + 1, "hash_mismatch"]),
    restarted: found("traces", [FACTS + 1, "content_mismatch"])
  },
  {
    on: "facts",
    what: "row added at 2^63",
    statements: addedFact("toUInt64(9223372036854775808)"),
    running: found("traces", [FACTS + 1, "hash_mismatch"]),
    restarted: found("traces", [FACTS + 3, "hash_mismatch"])
  },
  {
    on: "facts",
    what: "second version",
    isPacked: true,
    isSmall: true,
    statements: (target) => [
      copy(target, "facts", factRow(target), {
        version: "toUInt8(1)",
        body: "replaceOne(body, 'TOOL_CALL', 'LLM_CALL')"
      })
    ],
    running: found("traces", [FACT, "content_mismatch"])
  },
  {
    on: "facts",
    what: "row moved to another tenant",
    statements: (target) =>
      move(target, "facts", factRow(target), { tenant_id: `'${target.other.tenantId}'` }),
    running: found("traces", [FACT, "sequence_gap"]),
    other: found("traces", [FACT, "content_mismatch"])
  },
  {
    on: "facts",
    what: "row moved to another execution",
    statements: (target) => move(target, "facts", factRow(target), { execution_id: "'x3'" }),
    running: found("traces", [FACT, "content_mismatch"])
  },
  {
    on: "facts",
    what: "details of an erased execution put back",
    isErased: true,
    isSmall: true,
    statements: (target) => [
      update(`${target.database}.facts`, factRow(target, ERASED_FACT), {
        body: bodyAs(target, "facts", ERASED_FACT)
      })
    ],
    running: found("traces", [ERASED_FACT, "content_mismatch"])
  }
]

const spanRow = ({ own: { tenantId } }: Target): string =>
  `tenant_id = '${tenantId}' AND span_id = 's1'`
const INDEXED_FROM = "The index leads by span id to an execution. It says where the row came from."

const spanIdColumns: typeof eventColumns = [
  ["kafka_partition", "kafka_partition + 1", harmless(INDEXED_FROM)],
  // When facts are set aside, rows beyond the end of the topic are stored again with their place.
  ["kafka_offset", "9223372036854775808", harmless(INDEXED_FROM), { isSmall: true }],
  [
    "chain_sequence",
    "999",
    harmless(
      "The index leads to an execution by tenant, span and execution. The rows of the facts are what"
        + " is read."
    )
  ]
]
const keysOfSpanIds: typeof keysOfEvents = [
  [
    "tenant_id",
    ({ other }) => `'${other.tenantId}'`,
    found("traces", [FACT, "content_mismatch"]),
    {
      other: harmless("The other tenant has the same entry: its index leads as before.")
    }
  ],
  ["span_id", () => "'other'", found("traces", [FACT, "content_mismatch"])],
  ["execution_id", () => "'x3'", found("traces", [FACT, "content_mismatch"]), { isSmall: true }]
]

const spanIdRows: ReadonlyArray<Case> = [
  {
    on: "span_ids",
    what: "row deleted",
    isPacked: true,
    isSmall: true,
    statements: (target) => [remove(`${target.database}.span_ids`, spanRow(target))],
    running: found("traces", [FACT, "content_mismatch"])
  },
  {
    on: "span_ids",
    what: "row duplicated",
    statements: (target) => [copy(target, "span_ids", spanRow(target))],
    running: harmless("It leads to the same execution, which is shown once.")
  },
  {
    on: "span_ids",
    what: "row added for a span that there is not",
    statements: (target) => [copy(target, "span_ids", spanRow(target), { span_id: "'none'" })],
    running: found("traces", [1, "content_mismatch"])
  },
  {
    on: "span_ids",
    what: "row added that leads to another execution",
    statements: (target) => [copy(target, "span_ids", spanRow(target), { execution_id: "'x3'" })],
    running: found("traces", [1, "content_mismatch"])
  }
]

const checkpointRow = ({ own: { tenantId } }: Target): string =>
  `tenant_id = '${tenantId}' AND tree_size = ${EVENTS} AND chain = 'events'`
const REREAD =
  "Verification takes the newest genuine checkpoint from the topic, not from the" + " table."

const checkpointColumns: typeof eventColumns = [
  ["kafka_partition", "kafka_partition + 1", harmless(PLACE)],
  ["body", 'replaceOne(body, \'"root_hash":"\', \'"root_hash":"0\')', harmless(REREAD)]
]

const keysOfCheckpoints: typeof keysOfEvents = [
  ["kafka_offset", () => "toUInt64(9223372036854775808)", harmless(PLACE)],
  [
    "tenant_id",
    ({ other }) => `'${other.tenantId}'`,
    harmless(REREAD),
    {
      other: harmless("Its own checkpoint of this size has the higher offset and is read.")
    }
  ],
  ["tree_size", () => "toUInt64(11)", harmless(REREAD)]
]

const SUPERSEDED =
  "There is a newer checkpoint now, and verification compares with that. Who reads"
  + " the other one finds that no published key has signed it."

const otherKey = signerOf("alk", Buffer.alloc(32, 9))

/** A checkpoint of the first events of a chain, by a key of the intruder's. */
const forgedCheckpoint = ({ own }: Target, size = own.events.length): string => {
  const tree = Frontier.empty()
  for (const body of own.events.slice(0, size)) tree.append(JSON.parse(body).content_hash)
  const { created_at: at } = JSON.parse(own.events.at(-1)!)
  return JSON.stringify(makeCheckpoint(otherKey, "alk", own.tenantId, tree, at))
}

const checkpointRows: ReadonlyArray<Case> = [
  {
    on: "checkpoints",
    what: "row deleted",
    isSmall: true,
    statements: (target) => [remove(`${target.database}.checkpoints`, checkpointRow(target))],
    running: harmless(REREAD)
  },
  {
    on: "checkpoints",
    what: "all rows deleted",
    statements: ({ database, own }) => [
      remove(`${database}.checkpoints`, `tenant_id = '${own.tenantId}'`)
    ],
    running: harmless(`${REREAD} The next start puts the rows back.`)
  },
  {
    on: "checkpoints",
    what: "row duplicated",
    statements: (target) => [copy(target, "checkpoints", checkpointRow(target))],
    running: harmless(REREAD)
  },
  {
    on: "checkpoints",
    what: "row of 2^53 - 1 events added",
    statements: (target) => [
      copy(target, "checkpoints", checkpointRow(target), {
        tree_size: "toUInt64(9007199254740991)"
      })
    ],
    running: harmless(REREAD)
  },
  {
    on: "checkpoints",
    what: "row with a forged checkpoint in the place of the genuine one",
    isSmall: true,
    statements: (target) => [
      update(`${target.database}.checkpoints`, checkpointRow(target), {
        body: literal(forgedCheckpoint(target))
      })
    ],
    running: found("events", [EVENTS, "checkpoint_mismatch"]),
    restarted: harmless(SUPERSEDED)
  }
]

const RECEIPT =
  "A receipt is the answer to its sender, and no part of a chain. Who kept one finds"
  + " a change with POST /v1/verify."
const receiptRow = ({ own: { tenantId } }: Target): string => `tenant_id = '${tenantId}'`

const receiptColumns: typeof eventColumns = [
  ["kafka_partition", "kafka_partition + 1", harmless(RECEIPT)],
  ["body", `replaceOne(body, 'committed', 'failed')`, harmless(RECEIPT)],
  ["received_at", "received_at + 1", harmless(RECEIPT)]
]
const keysOfReceipts: typeof keysOfEvents = [
  ["tenant_id", ({ other }) => `'${other.tenantId}'`, harmless(RECEIPT)],
  ["receipt_id", () => "concat(receipt_id, 'x')", harmless(RECEIPT)],
  ["kafka_offset", () => "kafka_offset + 9223372036854775808", harmless(RECEIPT)]
]

const besideRows: ReadonlyArray<Case> = [
  {
    on: "receipts",
    what: "row added: the first one once more",
    statements: (target) => {
      const { database } = target
      return [
        `INSERT INTO ${database}.receipts SELECT * FROM ${database}.receipts`
          + ` WHERE ${receiptRow(target)} LIMIT 1`
      ]
    },
    running: harmless(RECEIPT)
  },
  {
    on: "receipts",
    what: "all rows deleted",
    isSmall: true,
    statements: (target) => [remove(`${target.database}.receipts`, receiptRow(target))],
    running: harmless(RECEIPT)
  },
  {
    on: "set_aside",
    what: "row added",
    statements: ({ database, own }) => [
      `INSERT INTO ${database}.set_aside (source, kafka_offset, tenant_id, sequence_number, body)`
        + ` VALUES ('events', 5, '${own.tenantId}', 5, 'junk')`
    ],
    running: harmless("No answer is made of what was set aside. It is kept to be looked at.")
  },
  {
    on: "subtrees",
    what: "row added for the tenant's tree",
    statements: ({ database, own }) =>
      ["", "/traces"].map(
        (chain) =>
          `INSERT INTO ${database}.subtrees (tree, level, node_index, hash)`
          + ` VALUES ('${own.tenantId}${chain}', 8, 0, repeat('x', 32))`
      ),
    running: harmless("A proof that does not lead to the signed root is made again from the rows.")
  },
  ...(["conflicts", "fact_conflicts"] as const).map(
    (table): Case => ({
      on: table,
      what: "row added that no record has made",
      isSmall: table === "conflicts",
      statements: ({ database, own }) => [
        `INSERT INTO ${database}.${table}`
          + ` VALUES (0, 4, '${own.tenantId}', 6, 'sequence_mismatch', 'x')`
      ],
      running: found(table === "conflicts" ? "events" : "traces", [6, "duplicate_sequence"])
    })
  )
]

type Made = (target: Target) => RawRecord

const keyed =
  (value: (target: Target) => string | Buffer | null): Made =>
  (target) => ({ key: target.own.tenantId, value: value(target) })

/** The chain of a tenant's events, to be gone on with. */
const eventsOf = (own: Subject, prevHash?: string) => {
  const chain = new Chain(own.tenantId)
  const { created_at: createdAt, hash, sequence_number } = JSON.parse(own.events.at(-1)!)
  chain.head = { sequence_number, hash: prevHash ?? hash, created_at: createdAt }
  return { chain, createdAt }
}

const eventAfter = ({ own }: Target, prevHash?: string): string => {
  const { chain, createdAt } = eventsOf(own, prevHash)
  return chain.append({ createdAt, id: "forged" })
}

/** Two that link to each other, the first to the end of the chain. */
const eventsAfter = ({ own }: Target): ReadonlyArray<string> => {
  const { chain, createdAt } = eventsOf(own)
  return ["forged-1", "forged-2"].map((id) => chain.append({ createdAt, id }))
}

const erasureOfEvent = ({ own }: Target): string => {
  const { chain, createdAt } = eventsOf(own)
  const { content_hash, id, sequence_number } = JSON.parse(own.events[EVENT - 1]!)
  return chain.append({
    createdAt,
    id: "forged",
    action: ERASURE_ACTION,
    resource: { id, type: ERASURE_RESOURCE_TYPE },
    metadata: { reason: "forged", sequence_number, content_hash }
  })
}

/** A fact that goes on with a chain of facts, of which this one is the last. */
const nextFact = (last: TraceFact, core: FactCore, prevHash = last.hash): string =>
  storeFact(core, undefined, {
    tenantId: last.tenant_id,
    chainSequence: last.chain_sequence + 1,
    createdAt: last.created_at,
    prevHash
  }).body

const lastFact = ({ own }: Target): TraceFact => parseFact(own.facts.at(-1)!)!

const factAfter = (target: Target, prevHash?: string): string => {
  const last = lastFact(target)
  return nextFact(last, { ...last, fact_number: last.fact_number + 1 }, prevHash)
}

const factsAfter = (target: Target): ReadonlyArray<string> => {
  const first = factAfter(target)
  const last = parseFact(first)!
  return [first, nextFact(last, { ...last, fact_number: last.fact_number + 1 })]
}

const erasureOfExecution = (target: Target): string => {
  const facts = target.own.facts.map((body) => parseFact(body)!)
  const own = facts.filter(({ execution_id }) => execution_id === "x1")
  return nextFact(facts.at(-1)!, {
    type: "execution.erased",
    execution_id: "x1",
    fact_number: own.at(-1)!.fact_number + 1,
    reason: "forged",
    erased_by: "key_forged"
  })
}

const OTHER_HASH = "ab".repeat(32)

/** One of the two chains, and what somebody may append to it. */
interface Forgery {
  readonly on: "events" | "traces"
  readonly own: "events" | "facts"
  readonly member: string
  readonly length: number
  /** One that links, unless another hash is given. */
  readonly next: (target: Target, prevHash?: string) => string
  /** Two that link. */
  readonly twoAfter: (target: Target) => ReadonlyArray<string>
  /** One that links and erases what the sequencer wrote. */
  readonly erasure: (target: Target) => string
}

const forgeries: ReadonlyArray<Forgery> = [
  {
    on: "events",
    own: "events",
    member: "sequence_number",
    length: EVENTS,
    next: eventAfter,
    twoAfter: eventsAfter,
    erasure: erasureOfEvent
  },
  {
    on: "traces",
    own: "facts",
    member: "chain_sequence",
    length: FACTS,
    next: factAfter,
    twoAfter: factsAfter,
    erasure: erasureOfExecution
  }
]

/** What can be appended to the topic of a chain, and what is found of it. */
const chained = ({
  erasure,
  length,
  member,
  next,
  on,
  own,
  twoAfter
}: Forgery): ReadonlyArray<Case> => {
  const at = own === "events" ? EVENT : FACT
  // A fact with such a number is no fact.
  const outside = own === "events" ? "duplicate_sequence" : "prev_hash_mismatch"
  const kept = (sequence: number) => (target: Target) => target.own[own][sequence - 1]!
  const numbered = (to: string) => (target: Target) =>
    kept(at)(target).replace(`"${member}":${at},`, `"${member}":${to},`)
  const one = (what: string, made: Made, running: Outcome, more: Partial<Case> = {}): Case => ({
    on: `alk.${on}`,
    what,
    records: (target) => [[on, made(target)]],
    running,
    ...more
  })
  return [
    one("record appended that links", keyed(next), found(on, [length + 1, "duplicate_sequence"]), {
      isSmall: true,
      isKept: true
    }),
    {
      on: `alk.${on}`,
      what: "two records appended that link",
      records: (target) =>
        twoAfter(target).map((value) => [on, keyed(() => value)(target)] as const),
      running: found(on, [length + 1, "duplicate_sequence"], [length + 2, "duplicate_sequence"]),
      isKept: true
    },
    one(
      "erasure appended that links, of a record whose details are there",
      keyed(erasure),
      found(on, [length + 1, "duplicate_sequence"]),
      { isSmall: true, isKept: true }
    ),
    one(
      "record forged that does not link",
      keyed((target) => next(target, OTHER_HASH)),
      found(on, [length + 1, "prev_hash_mismatch"]),
      { isSmall: true }
    ),
    one("record forged with sequence 0", keyed(numbered("0")), found(on, [0, outside]), {
      isSmall: true
    }),
    one(
      "record forged with sequence 2^63",
      keyed(numbered("9223372036854775808")),
      found(on, [0, outside])
    ),
    one("genuine record once more", keyed(kept(at)), found(on, [at, "duplicate_sequence"])),
    one("last record once more", keyed(kept(length)), found(on, [length, "duplicate_sequence"])),
    one(
      "junk",
      keyed(() => "junk"),
      found(on, [0, "prev_hash_mismatch"]),
      { isSmall: true }
    ),
    one(
      "record without a value",
      keyed(() => null),
      found(on, [0, "prev_hash_mismatch"])
    ),
    one(
      "record of another tenant under the tenant's key",
      keyed(({ other }) => other[own][at - 1]!),
      found(on, [at, "prev_hash_mismatch"])
    ),
    one(
      "record without a key",
      (target) => ({ key: null, value: kept(at)(target) }),
      harmless("It is of no tenant. The program logs it.")
    )
  ]
}

/** Kinds of forged records of which two are appended, and what is found of each. */
const kindsOf = ({
  length,
  member,
  next,
  on,
  own
}: Forgery): ReadonlyArray<readonly [string, Made, Found | undefined]> => {
  const at = (sequence: number, reason: BreakReason): Found => ({ chain: on, at: sequence, reason })
  const beyond = (target: Target) =>
    next(target).replace(`"${member}":${length + 1},`, `"${member}":${length + 9},`)
  return [
    ["links", keyed(next), at(length + 1, "duplicate_sequence")],
    [
      "does not link",
      keyed((target) => next(target, OTHER_HASH)),
      at(length + 1, "prev_hash_mismatch")
    ],
    ["is far beyond the end", keyed(beyond), at(length + 9, "duplicate_sequence")],
    [
      "is the last one once more",
      keyed((target) => target.own[own].at(-1)!),
      at(length, "duplicate_sequence")
    ],
    ["is junk", keyed(() => "junk"), at(0, "prev_hash_mismatch")],
    [
      "links, of another tenant",
      ({ other }) => ({ key: other.tenantId, value: next({ own: other } as Target) }),
      undefined
    ]
  ]
}

/** Two forged records, one after the other, of one chain and of both. */
const forgedPairs = (): ReadonlyArray<Case> => {
  const pair = (
    [first, second]: readonly [Forgery, Forgery],
    one: ReturnType<typeof kindsOf>[number],
    two: ReturnType<typeof kindsOf>[number]
  ): Case => {
    const isOther = one[2] === undefined || two[2] === undefined
    const ofOther = one[2] === undefined ? first : second
    return {
      on: first.on === second.on ? `alk.${first.on}, two records` : "alk.events and alk.traces",
      what: `one ${one[0]}, then one ${two[0]}`,
      records: (target) => [
        [first.on, one[1](target)],
        [second.on, two[1](target)]
      ],
      running: { found: [one[2], two[2]].filter((place) => place !== undefined) },
      isKept: true,
      ...(isOther ? { other: found(ofOther.on, [ofOther.length + 1, "duplicate_sequence"]) } : {}),
      isSmall: isOther && one[0] === "is far beyond the end"
    }
  }
  const pairsOf = (first: Forgery, second: Forgery) =>
    kindsOf(first).flatMap((one) =>
      kindsOf(second)
        .filter((two) => two[0] !== one[0])
        .map((two) => pair([first, second], one, two))
    )
  const [events, traces] = forgeries as [Forgery, Forgery]
  return [
    ...pairsOf(events, events),
    ...pairsOf(traces, traces),
    ...kindsOf(events).flatMap((one, index) =>
      one[2] === undefined ? [] : [pair([events, traces], one, kindsOf(traces)[index]!)]
    )
  ]
}

const MAC = "A record without a MAC of the service is refused and logged."
const COPY =
  "A copy of a genuine record is refused: it is at another place, or says what is known already."

const genuine =
  (topic: TopicKind, isOf: (record: RawRecord, tenantId: string) => boolean): Made =>
  ({ own, records }) =>
    records.get(topic)!.find((record) => isOf(record, own.tenantId))!

/** Topics of records that only the service's own processes read. */
const internal = (
  on: TopicKind,
  key: (tenantId: string) => string,
  value: (target: Target) => string
): ReadonlyArray<Case> => {
  const made: ReadonlyArray<readonly [string, Made, string]> = [
    ["record forged", (target) => ({ key: key(target.own.tenantId), value: value(target) }), MAC],
    ["junk", ({ own }) => ({ key: key(own.tenantId), value: "junk" }), MAC],
    ["record without a value", ({ own }) => ({ key: key(own.tenantId), value: null }), MAC],
    ["record without a key", (target) => ({ key: null, value: value(target) }), MAC]
  ]
  const isCopied = on !== "registry"
  const copied: Made = genuine(on, (record, tenantId) => String(record.key) === key(tenantId))
  return [...made, ...(isCopied ? [["genuine record once more", copied, COPY] as const] : [])].map(
    ([what, record, why], index) => ({
      on: `alk.${on}`,
      what,
      records: (target) => [[on, record(target)]],
      running: harmless(why),
      isSmall: index === 0
    })
  )
}

const AT = "2026-11-21T00:00:00.000000Z"
const forgedHead = (sequence: number): string =>
  JSON.stringify({ sequence_number: sequence, hash: OTHER_HASH, created_at: AT, tree: null })

const CHECKPOINTS = "It is no checkpoint. The program logs it."

const checkpointRecords: ReadonlyArray<Case> = [
  [
    "forged with another key",
    keyed(forgedCheckpoint),
    found("events", [EVENTS, "checkpoint_mismatch"]),
    { restarted: harmless(SUPERSEDED), isSmall: true }
  ],
  [
    "forged with another key, of fewer events",
    keyed((target) => forgedCheckpoint(target, EVENTS - 3)),
    harmless("A genuine one of more events is there, and verification compares with that."),
    { isSmall: true }
  ],
  ["junk", keyed(() => "junk"), harmless(CHECKPOINTS), {}],
  ["record without a value", keyed(() => null), harmless(CHECKPOINTS), {}],
  [
    "older checkpoint once more",
    genuine("checkpoints", ({ key }, tenantId) => String(key) === tenantId),
    harmless("The newest one is the one of the largest tree."),
    {}
  ]
].map(([what, made, running, more]) => ({
  on: "alk.checkpoints",
  what: what as string,
  records: (target) => [["checkpoints", (made as Made)(target)]],
  running: running as Outcome,
  ...(more as Partial<Case>)
}))

const genuineReceipt = genuine(
  "receipts",
  ({ value }, tenantId) => JSON.parse(String(value)).tenant_id === tenantId
)

const besideTopics: ReadonlyArray<Case> = [
  {
    on: "alk.receipts",
    what: "receipt forged: the genuine one, failed",
    isSmall: true,
    records: (target) => {
      const { key, value, ...rest } = genuineReceipt(target)
      const receipt = { ...JSON.parse(String(value)), status: "failed" }
      return [["receipts", { ...rest, key, value: JSON.stringify(receipt) }]]
    },
    running: harmless(RECEIPT)
  },
  {
    on: "alk.receipts",
    what: "genuine record once more",
    records: (target) => [["receipts", genuineReceipt(target)]],
    running: harmless(RECEIPT)
  },
  {
    on: "alk.receipts",
    what: "junk",
    records: () => [["receipts", { key: "any", value: "junk" }]],
    running: harmless(RECEIPT)
  },
  {
    on: "alk.receipts",
    what: "record without a value",
    records: () => [["receipts", { key: "any", value: null }]],
    running: harmless(RECEIPT)
  },
  {
    on: "alk.quarantine",
    what: "junk",
    records: () => [["quarantine", { key: "any", value: "junk" }]],
    running: harmless("Nothing is made of the records of this topic. They are kept to be seen.")
  }
]

const pairs: ReadonlyArray<Case> = [
  {
    on: "alk.events and events",
    what: "row deleted, its record once more",
    isSmall: true,
    records: (target) => [["events", keyed(({ own }) => own.events[EVENT - 1]!)(target)]],
    statements: (target) => [remove(`${target.database}.events`, eventRow(target))],
    running: found("events", [EVENT, "sequence_gap"], [EVENT, "duplicate_sequence"])
  },
  {
    on: "alk.events and events",
    what: "last row deleted, its record once more",
    records: (target) => [["events", keyed(({ own }) => own.events.at(-1)!)(target)]],
    statements: (target) => [remove(`${target.database}.events`, eventRow(target, EVENTS))],
    running: found("events", [EVENTS, "tail_missing"], [EVENTS, "duplicate_sequence"]),
    restarted: found("events", [EVENTS, "sequence_gap"], [EVENTS, "duplicate_sequence"])
  },
  {
    on: "alk.traces and facts",
    what: "row deleted, its record once more",
    records: (target) => [["traces", keyed(({ own }) => own.facts[FACT - 1]!)(target)]],
    statements: (target) => [remove(`${target.database}.facts`, factRow(target))],
    running: found("traces", [FACT, "sequence_gap"], [FACT, "duplicate_sequence"])
  },
  {
    on: "alk.state and events",
    what: "older head forged, the rows after it and the checkpoints deleted",
    isSmall: true,
    records: ({ own }) => [["state", { key: `head/${own.tenantId}`, value: forgedHead(7) }]],
    statements: ({ database, own }) => [
      remove(`${database}.events`, `tenant_id = '${own.tenantId}' AND sequence_number > 7`),
      remove(`${database}.checkpoints`, `tenant_id = '${own.tenantId}'`)
    ],
    running: found("events", [8, "tail_missing"]),
    restarted: found("events", [8, "sequence_gap"])
  },
  {
    on: "alk.state and events",
    what: "head deleted by a record without a value, all rows deleted",
    records: ({ own }) => [["state", { key: `head/${own.tenantId}`, value: null }]],
    statements: ({ database, own }) => [
      remove(`${database}.events`, `tenant_id = '${own.tenantId}'`)
    ],
    running: found("events", [1, "tail_missing"]),
    restarted: found("events", [1, "sequence_gap"])
  },
  {
    on: "alk.checkpoints and events",
    what: "checkpoint forged with another key, event changed",
    records: (target) => [["checkpoints", keyed(forgedCheckpoint)(target)]],
    statements: (target) => [
      update(`${target.database}.events`, eventRow(target), {
        outcome: "'failure'"
      })
    ],
    running: found("events", [EVENT, "content_mismatch"])
  },
  {
    on: "alk.progress and events",
    what: "progress forged, row deleted",
    records: () => [
      [
        "progress",
        {
          key: "0",
          value: JSON.stringify({ partition: 0, events_next: 1e6, rebuilding: true })
        }
      ]
    ],
    statements: (target) => [remove(`${target.database}.events`, eventRow(target))],
    running: found("events", [EVENT, "sequence_gap"])
  },
  {
    on: "alk.commands and events",
    what: "command forged, last row deleted",
    records: ({ own }) => [["commands", { key: own.tenantId, value: "{}" }]],
    statements: (target) => [remove(`${target.database}.events`, eventRow(target, EVENTS))],
    running: found("events", [EVENTS, "tail_missing"]),
    restarted: found("events", [EVENTS, "sequence_gap"])
  }
]

const NOTED =
  "The record is in no chain and in no answer, and its topic still holds it. What is"
  + " lost is the row that says so."

/** A record that does not link, and what is done to the row that says so. */
const conflictCases = (table: "conflicts" | "fact_conflicts"): ReadonlyArray<Case> => {
  const isEvents = table === "conflicts"
  const on = isEvents ? "events" : "traces"
  const at = isEvents ? EVENT : FACT
  const row = ({ own }: Target): string =>
    `tenant_id = '${own.tenantId}' AND sequence_number = ${at}`
  const records = (target: Target) => [
    [on, keyed(({ own }) => (isEvents ? own.events : own.facts)[at - 1]!)(target)] as const
  ]
  const duplicate = found(on, [at, "duplicate_sequence"])
  const columns: typeof eventColumns = [
    ["reason", "'other'", found(on, [at, "prev_hash_mismatch"])],
    ["body", "'other'", duplicate]
  ]
  const keys: typeof keysOfEvents = [
    ["kafka_partition", () => "toUInt32(1)", duplicate],
    [
      "kafka_offset",
      () => "toUInt64(9223372036854775808)",
      duplicate,
      {
        started: harmless(NOTED),
        restarted: harmless(NOTED)
      }
    ],
    ["tenant_id", ({ other }) => `'${other.tenantId}'`, harmless(NOTED), { other: duplicate }],
    ["sequence_number", () => "toUInt64(999)", found(on, [999, "duplicate_sequence"])]
  ]
  const deleted: Case = {
    on: table,
    what: "row deleted",
    isSmall: isEvents,
    statements: (target) => [remove(`${target.database}.${table}`, row(target))],
    running: harmless(NOTED)
  }
  return [...updates(table, row, columns), ...moves(table, row, keys), deleted].map((one) => ({
    ...one,
    on: `alk.${on} and ${table}`,
    what: `genuine record once more, then of its row: ${one.what}`,
    records
  }))
}

export const cases: ReadonlyArray<Case> = [
  ...updates("events", eventRow, eventColumns),
  ...moves("events", eventRow, keysOfEvents),
  ...eventRows,
  ...updates("facts", factRow, factColumns),
  ...moves("facts", factRow, keysOfFacts),
  ...factRows,
  ...updates("span_ids", spanRow, spanIdColumns),
  ...moves("span_ids", spanRow, keysOfSpanIds),
  ...spanIdRows,
  ...updates("checkpoints", checkpointRow, checkpointColumns),
  ...moves("checkpoints", checkpointRow, keysOfCheckpoints),
  ...checkpointRows,
  ...updates("receipts", receiptRow, receiptColumns),
  ...moves("receipts", receiptRow, keysOfReceipts),
  ...besideRows,
  ...forgeries.flatMap(chained),
  ...forgedPairs(),
  ...checkpointRecords,
  ...internal(
    "commands",
    (tenantId) => tenantId,
    () => "{}"
  ),
  ...internal(
    "state",
    (tenantId) => `head/${tenantId}`,
    () => forgedHead(3)
  ),
  ...internal(
    "progress",
    () => "0",
    () => JSON.stringify({ partition: 0, events_next: 1e6 })
  ),
  ...internal(
    "registry",
    () => "key/key_forged",
    () => JSON.stringify({ id: "key_forged" })
  ),
  ...besideTopics,
  ...pairs,
  ...conflictCases("conflicts"),
  ...conflictCases("fact_conflicts")
]

/** Tables whose columns have no case each, and why. */
export const tablesAsAWhole: ReadonlyMap<string, string> = new Map([
  [
    "schema_migrations",
    "Says which files of `schemas/clickhouse` were applied. A changed row is"
      + " refused at the next start, with its name (`test/adapters/clickhouse/Migrations.integration.ts`)."
  ],
  ["set_aside", "No answer is made of it."],
  ["subtrees", "A cache of hashes for proofs, made again when a proof does not hold."]
])
