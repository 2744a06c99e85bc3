import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { advance, stateRecords } from "../../src/actors/sequencer/Changelog.ts"
import type { StateChanges } from "../../src/actors/sequencer/SequencerDraft.ts"
import {
  emptyState,
  givenUpRecord,
  handOverRecord,
  metaRecord,
  ownerRecord,
  repairRecord,
  signerRecord,
  snapshot
} from "../../src/actors/sequencer/SequencerState.ts"
import { type ReceivedCommand, step } from "../../src/actors/sequencer/SequencerStep.ts"
import { exampleEvent, exampleLink } from "../../src/contracts/ExampleEvent.ts"
import { exampleFactValue } from "../../src/contracts/ExampleFact.ts"
import { eraseEvent } from "../../src/domain/events/HashChain.ts"
import {
  isTenantId,
  makeReceiptId,
  newApiKey,
  SYSTEM_TENANT,
  sha256Hex,
  uuidv7
} from "../../src/domain/Identifiers.ts"
import { auditEventHeaders } from "../../src/domain/records/CloudEvent.ts"
import type { Command, ItemError } from "../../src/domain/records/Command.ts"
import { decodeCommand, encodeCommand } from "../../src/domain/records/CommandBytes.ts"
import { type PreparedEvent, toBatch } from "../../src/domain/records/EventBatch.ts"
import { noProgress } from "../../src/domain/records/Progress.ts"
import type { StateRecord } from "../../src/domain/records/StateRecords.ts"
import {
  type ApiKey,
  type RegistryEntry,
  type RegistryOperation,
  registryKey,
  registryValue,
  type Session,
  type ShareLink
} from "../../src/domain/registry/RegistryEntry.ts"
import { eraseFact, factDetailsHash, parseFact } from "../../src/domain/traces/FactText.ts"
import type { PreparedDetails } from "../../src/domain/traces/TraceFact.ts"
import type { TraceOperation } from "../../src/domain/traces/TraceOperation.ts"
import { prepareItem } from "../../src/services/ingest/Prepare.ts"
import { eventsIn } from "../support/PackedEvents.ts"
import { checkpointSigner } from "../support/Signer.ts"
import { faultIn, faultInValue, kindsOf, publishedNames } from "./Published.ts"

const NOW = "2026-11-21T12:00:00.000000Z"
const SECRET = "a secret of the tests that is long enough"

const prepare = (tenantId: string, items: ReadonlyArray<Record<string, unknown>>) => {
  const events: Array<PreparedEvent> = []
  const errors: Array<ItemError> = []
  items.forEach((item, index) => {
    const options = { index, mode: "batch", tenantId, acceptedAt: NOW, secret: SECRET } as const
    const prepared = prepareItem(item, options)
    if ("ok" in prepared) events.push(prepared.ok)
    else errors.push({ index, ...prepared.error })
  })
  return { events: toBatch(events), errors }
}

const command = (
  tenantId: string,
  items: ReadonlyArray<Record<string, unknown>>,
  more: Partial<Command> = {}
): Command => ({
  kind: "ingest",
  tenantId,
  receiptId: makeReceiptId(SECRET, tenantId, uuidv7()),
  attempt: crypto.randomUUID(),
  receivedAt: NOW,
  ...prepare(tenantId, items),
  warnings: [],
  ...more
})

const item = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  actor: { id: "u\u2028ser 😀", type: "human", email: "a@example.com\n" },
  action: "document.read",
  resource: { id: 'd"oc\\1', type: "document", name: "tab\tand\nline" },
  outcome: "success",
  metadata: { "a\tb": ["\n", 1.5, null, { deep: true }], z: {} },
  ...more
})

const idempotency = { key: "ab".repeat(16), body: "cd".repeat(16), forgetConflict: true }

const key: ApiKey = {
  id: `key_${uuidv7()}`,
  tenant_id: "acme",
  scopes: ["read", "write"],
  label: "ci",
  hint: `${newApiKey("alk_live_").slice(0, 13)}…`,
  hash: sha256Hex("a key"),
  created_at: NOW,
  expires_at: "2036-11-21T12:00:00.000000Z"
}

const link: ShareLink = {
  id: `lnk_${uuidv7()}`,
  tenant_id: "acme",
  label: "auditor",
  filter: { actorId: "u1", from: NOW, metadata: [{ path: "a.b", value: "1" }] },
  hash: sha256Hex("a token"),
  created_by: key.id,
  created_at: NOW,
  expires_at: "2026-11-28T12:00:00.000000Z",
  max_uses: 3,
  uses: 1,
  last_used_at: NOW
}

const session: Session = {
  id: `ses_${uuidv7()}`,
  tenant_id: "acme",
  key_id: key.id,
  hash: sha256Hex("a token and a key"),
  created_at: NOW,
  expires_at: "2026-11-22T00:00:00.000000Z"
}

const details = (text: string): PreparedDetails => {
  const salt = "ab".repeat(16)
  return { text, salt, hash: factDetailsHash(salt, text) }
}

/** An execution with ids that hold what separates ids in a key. */
const traces: ReadonlyArray<TraceOperation> = [
  {
    op: "execution.start",
    index: 0,
    executionId: "run/1 %",
    fresh: true,
    agentId: "agent",
    rootSpanId: "root",
    startedAt: NOW,
    startedAtGiven: false,
    rootDetails: details('{"name":"agent"}')
  },
  {
    op: "span.start",
    index: 1,
    executionId: "run/1 %",
    spanId: "call/ü",
    fresh: false,
    causedBy: [],
    spanType: "TOOL_CALL",
    startedAt: NOW,
    startedAtGiven: true,
    details: details('{"name":"search"}')
  },
  {
    op: "span.event",
    index: 2,
    spanId: "call/ü",
    eventId: "e1",
    eventType: "tool.request",
    timestamp: NOW
  },
  {
    op: "span.end",
    index: 3,
    spanId: "call/ü",
    status: "COMPLETED",
    endedAt: NOW,
    endedAtGiven: true
  },
  {
    op: "execution.end",
    index: 4,
    executionId: "nobody's",
    status: "FAILED",
    endedAt: NOW,
    endedAtGiven: true
  }
]

const registry = (operation: RegistryOperation): Command =>
  command(SYSTEM_TENANT, [item()], { kind: "registry", operation })

/** One of everything that a sequencer meets. */
const commands: ReadonlyArray<Command> = [
  command("acme", [item(), item({ id: "evt-1" }), item({ id: "ord/1 ü", metadata: undefined })]),
  command("acme", [item({ id: "evt-1" }), item({ id: "evt-1", action: "a.b" })]),
  command("globex", [item({ action: "nodots" }), item({ timestamp: "1.1.2026" })], {
    warnings: [{ index: 0, field: "actor.shoe_size" }]
  }),
  command("acme", [item()], { idempotency }),
  command("acme", [item()], { idempotency }),
  command("acme", [item()], { idempotency: { ...idempotency, body: "ef".repeat(16) } }),
  registry({ op: "create_tenant", tenant: { id: "acme", name: "Acme", created_at: NOW } }),
  registry({ op: "create_tenant", tenant: { id: "acme", created_at: NOW } }),
  registry({ op: "create_key", key }),
  registry({ op: "create_link", link }),
  registry({ op: "use_link", tenant_id: "acme", link_id: link.id, used_at: NOW }),
  registry({ op: "revoke_link", tenant_id: "acme", link_id: link.id, revoked_at: NOW }),
  registry({ op: "create_session", session }),
  registry({ op: "end_session", session_id: session.id, ended_at: NOW }),
  registry({ op: "use_keys", uses: [{ key_id: key.id, used_at: NOW }] }),
  registry({ op: "revoke_key", tenant_id: "acme", key_id: key.id, revoked_at: NOW }),
  registry({
    op: "add_signing_key",
    signing_key: {
      key_id: checkpointSigner.signer.keyId,
      vkey: checkpointSigner.signer.vkey,
      public_key: checkpointSigner.signer.publicKey,
      added_at: NOW
    }
  }),
  command("acme", [], { kind: "trace", traces }),
  command("acme", [], { kind: "checkpoint" }),
  command("_probe", [], { kind: "probe", receiptId: crypto.randomUUID() })
]

const receivedCommands: ReadonlyArray<ReceivedCommand> = [
  ...commands.map((sent, offset): ReceivedCommand => {
    const value = encodeCommand(sent)
    const position = { writer: "1795262400000000-0a0b0c0d", number: offset + 1 }
    return { offset, value, position, command: decodeCommand(value) }
  }),
  {
    offset: commands.length,
    value: Buffer.from([0xff, 0]),
    unreadable: "the first line is not JSON",
    tenantId: "acme",
    receiptId: "of somebody else"
  }
]

interface Outcome {
  readonly changes: StateChanges
  readonly state: ReadonlyArray<StateRecord>
  readonly receipts: ReadonlyArray<unknown>
}

/** Of a partition whose signing key was replaced. */
const ofKeyChange = ({ checkpoints }: StateChanges): ReadonlyArray<StateRecord> => [
  handOverRecord(checkpoints[0]!),
  signerRecord({ vkey: checkpointSigner.signer.vkey, previous: null }),
  signerRecord({ vkey: checkpointSigner.signer.vkey, previous: checkpointSigner.signer.vkey })
]

const run = (): Outcome => {
  const state = emptyState(0, 4, { dedup: 100, idempotency: 100 })
  const changes = step(state, receivedCommands, checkpointSigner, NOW)
  const ends = {
    eventsNext: changes.events.count,
    tracesNext: changes.traces.facts.length,
    strays: [{ chain: "events" as const, first: 0, next: 2 }]
  }
  const records = [
    metaRecord(4),
    ownerRecord(crypto.randomUUID()),
    repairRecord(NOW),
    givenUpRecord(changes.checkpoints[0]!),
    ...ofKeyChange(changes),
    ...stateRecords(state, changes, ends)
  ]
  advance(state, changes, ends)
  const receipts = changes.receipts.map(({ eventsBefore, receipt }) =>
    JSON.parse(JSON.stringify({ ...receipt, events_next: eventsBefore }))
  )
  return { changes, state: [...records, ...snapshot(state)], receipts }
}

const { changes, receipts, state } = run()
const events = eventsIn(changes)
const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const assertValid = (name: string, values: ReadonlyArray<unknown>, part?: string): void => {
  assert.isNotEmpty(values)
  for (const value of values) {
    assert.isUndefined(faultIn(name, asJson(value), part), JSON.stringify(value))
  }
}

const schemaOf = {
  tenant: "registry-tenant",
  key: "registry-api-key",
  key_use: "registry-key-use",
  link: "registry-share-link",
  session: "registry-session",
  signing_key: "registry-signing-key",
  quarantine_act: "registry-quarantine-act",
  data_version: "registry-data-version",
  partitions: "registry-partitions",
  retention: "registry-retention",
  pruned: "registry-pruned",
  tombstone: "registry-tombstone"
}

const entryOf = ({ kind }: RegistryEntry): string => schemaOf[kind]

describe("records of the program pass their schema", () => {
  it("commands, every line and every event of them", () => {
    for (const sent of commands) {
      assert.isUndefined(faultInValue("command", encodeCommand(sent)))
    }
  })

  it("events and their headers", () => {
    assertValid(
      "audit-event",
      events.map(({ body }) => JSON.parse(body))
    )
    assertValid(
      "audit-event",
      events.map(({ headers }) => headers),
      "headers"
    )
    assertValid(
      "audit-event",
      events.map(({ tenantId }) => tenantId),
      "key"
    )
    assert.sameMembers(
      [...new Set(events.map(({ tenantId }) => tenantId))],
      ["acme", SYSTEM_TENANT]
    )
  })

  it("receipts: committed, partly refused, duplicate, failed, quarantined, of a probe", () => {
    assertValid("receipt", receipts)
    const all = receipts as ReadonlyArray<Record<string, unknown>>
    for (const member of ["duplicates", "warnings", "error", "head_hash", "committed_at"]) {
      assert.isTrue(
        all.some((receipt) => member in receipt),
        member
      )
    }
  })

  it("verdicts on repeated attempts", () => {
    assertValid("attempt-verdict", changes.verdicts)
    const verdicts = changes.verdicts.map(({ verdict }) => verdict)
    assert.deepStrictEqual(verdicts, ["repeat", "mismatch"])
  })

  it("the changelog, each record known by its key to one schema only", () => {
    const names = publishedNames.filter((name) => name.startsWith("state-"))
    const seen = new Set<string>()
    for (const { key: stateKey, value } of state) {
      const record = {
        key: stateKey,
        headers: { "alk-mac": "ab".repeat(32) },
        value: Buffer.from(value ?? "")
      }
      const kinds = kindsOf(record, names)
      assert.strictEqual(kinds.length, 1, stateKey)
      assert.isUndefined(faultInValue(kinds[0]!, record.value), stateKey)
      seen.add(kinds[0]!)
    }
    assert.sameMembers([...seen], names)
  })

  it("the registry, keys and values", () => {
    const entries = changes.registry.filter((change) => change.kind !== "removed")
    assert.sameMembers(
      [...new Set(entries.map(entryOf))],
      [
        "registry-tenant",
        "registry-api-key",
        "registry-share-link",
        "registry-session",
        "registry-key-use",
        "registry-signing-key"
      ]
    )
    for (const entry of entries) {
      assertValid(entryOf(entry), [JSON.parse(registryValue(entry))])
      assertValid(entryOf(entry), [registryKey(entry)], "key")
    }
  })

  it("progress", () => {
    assertValid("progress", [noProgress(3), { ...noProgress(0), final: true, duplicates_from: 7 }])
  })

  it("requests to build a view again, and what is said of them", () => {
    const id = "5e923378-4634-4a54-ac54-699e7c83922c"
    const request = { id, requested_at: NOW }
    assertValid("progress-rebuild", [request, { ...request, tenant_id: "acme" }])
    const counts = { records: 5, compared: 4, stored: 1, set_aside: 0 }
    assertValid("progress-rebuilt", [{ id, at: NOW, done: true, ...counts }])
  })

  it("quarantined bytes, whatever they are", () => {
    assert.isNotEmpty(changes.quarantined)
    for (const { value } of changes.quarantined) {
      assert.isUndefined(faultInValue("quarantine", value ?? Buffer.alloc(0)))
    }
  })
})

/** Members whose absence is written down as null. */
const NULLABLE = new Set(["tree", "ended_at", "parent_span_id", "details"])

/** The value with one thing changed, each in turn. */
const broken = function* (value: unknown, path = ""): Generator<readonly [string, unknown]> {
  if (typeof value !== "object" || value === null || path.endsWith("/metadata")) return
  if (Array.isArray(value)) {
    for (const [index, member] of value.entries()) {
      for (const [where, changed] of broken(member, `${path}/${index}`)) {
        yield [where, value.with(index, changed)]
      }
    }
    return
  }
  const object = value as Record<string, unknown>
  yield [`${path} with a member too many`, { ...object, surplus: 1 }]
  for (const [name, member] of Object.entries(object)) {
    if (!NULLABLE.has(name)) yield [`${path}/${name} null`, { ...object, [name]: null }]
    const other = Array.isArray(member) ? { of: member } : [member]
    yield [`${path}/${name} of another type`, { ...object, [name]: other }]
    for (const [where, changed] of broken(member, `${path}/${name}`)) {
      yield [where, { ...object, [name]: changed }]
    }
  }
}

const without = (object: Record<string, unknown>, name: string): Record<string, unknown> => {
  const { [name]: _removed, ...rest } = object
  return rest
}

const firstReceipt = receipts[0] as Record<string, unknown>
const headOf = (stateKey: string): Record<string, unknown> =>
  JSON.parse(String(state.find((record) => record.key === stateKey)!.value))

interface Sample {
  readonly name: string
  readonly sample: Record<string, unknown>
  readonly part?: string
}

const headOfCommand = (sent: Command): Record<string, unknown> => {
  const value = encodeCommand(sent)
  return JSON.parse(value.toString("utf8", 4, 4 + value.readUInt32LE(0)))
}

const samples: ReadonlyArray<Sample> = [
  { name: "audit-event", sample: { ...exampleEvent } },
  { name: "audit-event", part: "headers", sample: auditEventHeaders("alk", exampleLink) },
  { name: "receipt", sample: { ...firstReceipt } },
  { name: "attempt-verdict", sample: { ...changes.verdicts[0] } },
  { name: "progress", sample: { ...noProgress(0) } },
  { name: "registry-api-key", sample: { ...key } },
  { name: "registry-tenant", sample: { id: "acme", name: "Acme", created_at: NOW } },
  { name: "command", sample: headOfCommand(commands[3]!) },
  { name: "command", sample: headOfCommand(commands[9]!) },
  { name: "state-head", sample: headOf("head/acme") },
  { name: "state-trace-head", sample: headOf("trace-head/acme") },
  { name: "state-checkpoint", sample: headOf("checkpoint/acme") },
  { name: "state-execution", sample: headOf("x/acme/run%2F1 %25") },
  { name: "state-span", sample: headOf("s/acme/run%2F1 %25/call%2Fü") },
  { name: "checkpoint", sample: headOf("checkpoint/acme") },
  { name: "registry-share-link", sample: { ...link } },
  { name: "registry-session", sample: { ...session } },
  { name: "registry-key-use", sample: { key_id: key.id, used_at: NOW } },
  { name: "state-applied", sample: headOf("applied") },
  { name: "state-meta", sample: headOf("meta") },
  { name: "state-owner", sample: headOf("owner") },
  { name: "state-repair", sample: headOf("repair") }
]

/** Members that a record may be without. */
const OPTIONAL = new Set([
  "metadata",
  "details_salt",
  "details_hash",
  "warnings",
  "duplicates",
  "first_sequence_number",
  "last_sequence_number",
  "committed_at",
  "head_hash",
  "error",
  "name",
  "label",
  "revoked_at",
  "last_used_at",
  "idempotency",
  "operation",
  "max_uses",
  "waited"
])

const isOptional = (record: string, member: string): boolean =>
  (OPTIONAL.has(member) && !(record === "command" && member === "warnings"))
  // Of links and sessions it is not.
  || (record === "registry-api-key" && member === "expires_at")

describe("broken records fail their schema", () => {
  it.each(samples)("$name, whatever is wrong with it", ({ name, part, sample }) => {
    assert.isUndefined(faultIn(name, sample, part))
    for (const [what, value] of broken(sample)) {
      assert.isDefined(faultIn(name, value, part), what)
    }
    for (const member of Object.keys(sample)) {
      const optional = isOptional(name, member)
      const fault = faultIn(name, without(sample, member), part)
      if (optional) assert.isUndefined(fault, member)
      else assert.isDefined(fault, member)
    }
  })

  it.each([
    ["sequence_number", 0],
    ["sequence_number", 1.5],
    ["sequence_number", "1"],
    ["hash", exampleEvent.hash.toUpperCase()],
    ["hash", exampleEvent.hash.slice(1)],
    ["prev_hash", ""],
    ["created_at", "2026-11-21T10:00:01Z"],
    ["created_at", "2026-11-21T10:00:01.204711+00:00"],
    ["timestamp", "2026-13-21T10:00:01.000001Z"],
    ["action", "line\nfeed"],
    ["outcome", "maybe"],
    ["tenant_id", "Acme"],
    ["id", ""],
    ["id", "x".repeat(257)],
    ["id", "a\u0007b"],
    ["erased_at", "yesterday"]
  ])("an event whose %s is wrong (%#)", (member, value) => {
    assert.isDefined(faultIn("audit-event", { ...exampleEvent, [member]: value }))
  })

  it("but not one that its topic was let forget", () => {
    const forgotten = JSON.parse(eraseEvent(exampleEvent, NOW))
    assert.notProperty(forgotten, "metadata")
    assert.isUndefined(faultIn("audit-event", forgotten))
    const fact = JSON.parse(eraseFact(parseFact(exampleFactValue)!, NOW))
    assert.notProperty(fact, "details")
    assert.isUndefined(faultIn("trace-fact", fact))
  })

  it.each([
    ["ce_type", "alk.audit.event.v2"],
    ["ce_specversion", "0.3"],
    ["ce_source", "alk"],
    ["ce_id", "0"]
  ])("an event whose header %s is wrong (%#)", (header, value) => {
    const headers = { ...auditEventHeaders("alk", exampleLink), [header]: value }
    assert.isDefined(faultIn("audit-event", headers, "headers"))
  })

  it("a window that is cut", () => {
    const window = state.find((record) => record.key.startsWith("dedup/"))!.value as Buffer
    assert.isUndefined(faultInValue("state-window", window))
    assert.isDefined(faultInValue("state-window", window.subarray(1)))
  })
})

describe("the forms in the schemas", () => {
  it("take exactly the tenants that the program takes", () => {
    const near = fc.string({ unit: fc.constantFrom("a", "z", "0", "9", "_", "-", "A", ".", "é") })
    fc.assert(
      fc.property(near, (id) => {
        const fault = faultIn("registry-tenant", `tenant/${id}`, "key")
        assert.strictEqual(fault === undefined, isTenantId(id))
      })
    )
    assert.isTrue(isTenantId("a".repeat(63)))
    assert.isUndefined(faultIn("audit-event", "a".repeat(63), "key"))
    assert.isDefined(faultIn("audit-event", "a".repeat(64), "key"))
    assert.isUndefined(faultIn("audit-event", SYSTEM_TENANT, "key"))
  })

  it("take whatever event passes acceptance", () => {
    const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 })
    const items = fc.record(
      {
        id: text,
        actor: fc.record({ id: text, email: text }, { requiredKeys: ["id"] }),
        action: fc.constantFrom("a.b", "a-1._b.C"),
        resource: fc.record({ id: text, type: text, name: text }, { requiredKeys: ["id", "type"] }),
        metadata: fc.dictionary(text, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 })
      },
      { requiredKeys: ["actor", "action", "resource"] }
    )
    let accepted = 0
    fc.assert(
      fc.property(fc.array(items, { minLength: 1, maxLength: 5 }), (sent) => {
        const made = command("acme", sent)
        accepted += made.events.count
        const value = encodeCommand(made)
        assert.isUndefined(faultInValue("command", value))
        const received = { offset: 0, value, command: decodeCommand(value) }
        const own = emptyState(0, 1, { dedup: 10, idempotency: 10 })
        for (const { body } of eventsIn(step(own, [received], checkpointSigner, NOW))) {
          assert.isUndefined(faultInValue("audit-event", Buffer.from(body)), body)
        }
      }),
      { numRuns: 200 }
    )
    assert.isAbove(accepted, 100)
  })
})
