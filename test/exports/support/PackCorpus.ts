/**
 * Packs that were changed at random, from a seed: in their bytes, their entries, files, lines and
 * fields; with sums and manifest left as they were, made to fit, or signed again with the real key.
 * The same seed always gives the same pack.
 */
import { createHash } from "node:crypto"
import { type Signer, signerOf } from "../../../src/domain/chain/Checkpoint.ts"
import { endorse } from "../../../src/domain/chain/KeyLine.ts"
import { eraseFact, parseFact } from "../../../src/domain/traces/FactText.ts"
import { keysDocument } from "../../../src/http/chain/PublicKeys.ts"
import { publishedKeys } from "../../../src/services/checkpoints/SigningKeys.ts"
import { FactChain, type Placed } from "../../adapters/clickhouse/support/StoredFacts.ts"
import { hostileItems, TestChain } from "./Chains.ts"
import { changeClaims } from "./ClaimChanges.ts"
import { Dice } from "./Dice.ts"
import { PackEditor } from "./PackEditor.ts"
import {
  checkpointOf,
  handOverNote,
  otherSigner,
  PackWorld,
  ROTATED_AT,
  SERVICE,
  signer
} from "./PackWorld.ts"
import { type RawEntry, type RawZip, rawZip } from "./RawZip.ts"

/** One changed pack and what its verifier is given. */
export interface Mutant {
  readonly seed: number
  /** What was done to it. */
  readonly story: string
  readonly zip: Buffer
  /** True if a file that the manifest covers, or the manifest, has other bytes than before. */
  readonly isChanged: boolean
  /** True if the real key has signed the manifest as it is now. */
  readonly isSigned: boolean
  readonly key: string | undefined
  readonly kept: ReadonlyArray<string>
}

interface Base {
  readonly chain: TestChain
  readonly zip: Buffer
  /** What may be given as the key: C2SP keys, or the text of alk-keys.json. */
  readonly keys: ReadonlyArray<string>
  /** Who may sign the manifest of a changed pack. */
  readonly signers: ReadonlyArray<Signer>
  /** A checkpoint of this size that somebody may have kept. */
  kept(size: number): string
}

/** The key that `signer` has replaced, in the worlds with a change of keys. */
const replacedSigner = signerOf(SERVICE, Buffer.alloc(32, 6))
/** Events and facts in the trees that it handed over. */
const HANDED_OVER = { events: 8, traces: 6 }

/** alk-keys.json after the change of keys. */
const freshKeys = (): string => {
  const published = [replacedSigner, signer].map(({ keyId, publicKey, vkey }, at) => ({
    key_id: keyId,
    vkey,
    public_key: publicKey,
    added_at: `2026-11-1${at}T00:00:00.000000Z`,
    ...(at === 0 ? {} : { endorsement: endorse(replacedSigner, vkey, ROTATED_AT) })
  }))
  return JSON.stringify(keysDocument(publishedKeys(published, [])))
}

/** Of the worlds with a change of keys; kept is what the key of that time signed. */
const rotatedBase = (chain: TestChain, zip: Buffer): Base => ({
  chain,
  zip,
  keys: [replacedSigner.vkey, signer.vkey, freshKeys(), freshKeys()],
  signers: [replacedSigner, signer, otherSigner],
  kept: (size) =>
    size === HANDED_OVER.events
      ? handOverNote(chain, size, replacedSigner, signer)
      : checkpointOf(chain, size, size < HANDED_OVER.events ? replacedSigner : signer).note
})

const plainBase = (chain: TestChain, zip: Buffer): Base => ({
  chain,
  zip,
  keys: [signer.vkey],
  signers: [otherSigner, signer, signer],
  kept: (size) => checkpointOf(chain, size).note
})

/** Signs the manifest of a pack as it is. */
export const sign = (pack: PackEditor, tenant: string, by = signer): PackEditor => {
  const manifest = pack.files.get("manifest.json")
  if (manifest === undefined) return pack
  const root = createHash("sha256").update(manifest).digest("base64")
  const text = `${SERVICE}/${tenant}/evidence-pack-v2\n${manifest.length}\n${root}\n`
  return pack.set("manifest.sig", `${text}\n${by.sign(text)}`).sums()
}

const FIRST_WITH_TRACES = 4
const FIRST_ROTATED = 6

/** A period in which the second of their executions ran, and no other. */
export const PERIOD_OF_RUN_2 = {
  from: "2020-01-01T00:00:00.000000Z",
  to: "2029-01-01T00:00:00.000000Z"
}

/** Three executions whose facts come mixed; the second one was erased. */
export const tracesOf = (): ReadonlyArray<Placed> => {
  const chain = new FactChain("acme")
  chain.start("run-1", { started_at: "2019-01-01T00:00:00.000000Z" })
  chain.start("run-2")
  chain.span("run-1", "span-1")
  chain.event("run-1", "span-1", 1, { prompt: "hello", n: 0.1 })
  chain.span("run-2", "span-2")
  chain.endSpan("run-1", "span-1")
  chain.event("run-2", "span-2", 1)
  chain.end("run-2")
  const erasure = chain.erase("run-2")
  chain.start("run-3", { provisional: true, started_at: "2030-01-01T00:00:00.000000Z" })
  chain.span("run-3", "span-3")
  chain.end("run-1", "FAILED", "2019-01-01T00:00:01.000000Z")
  const { created_at: time } = parseFact(erasure.body)!
  return chain.all.map((placed) =>
    placed.executionId === "run-2" && placed.chainSequence < erasure.chainSequence
      ? { ...placed, body: eraseFact(parseFact(placed.body)!, time) }
      : placed
  )
}

/** The packs that are changed: without what is the same in every pack, so that they are small. */
export const basePacks = async (): Promise<ReadonlyArray<Base>> => {
  const erased = new TestChain("acme", 9)
  erased.erase(4)
  for (let n = 0; n < 6; n++) erased.add()
  erased.erase(2)
  erased.erase(12)
  const hostile = new TestChain("acme")
  for (const item of hostileItems) hostile.add(item)
  const traces = tracesOf()
  const wishes = [
    [erased, { checkpoints: [5, 11] }],
    [erased, { filter: { fromSequence: 4, toSequence: 13 }, checkpoints: [3, 7] }],
    [erased, { filter: { outcome: "success" } }],
    [hostile, { checkpoints: [6] }],
    [new TestChain("acme", 2), { traceCheckpoints: [3, 8] }],
    [
      new TestChain("acme", 2),
      {
        filter: PERIOD_OF_RUN_2,
        facts: traces.filter(({ executionId }) => executionId === "run-2"),
        traceCheckpoints: [5]
      }
    ],
    [
      new TestChain("acme", 12),
      {
        rotation: { before: replacedSigner, ...HANDED_OVER },
        checkpoints: [4, 10],
        traceCheckpoints: [3, 8]
      }
    ],
    [
      erased,
      {
        filter: { toSequence: 6 },
        rotation: { before: replacedSigner, ...HANDED_OVER },
        checkpoints: [6]
      }
    ],
    // Made while both chains grew, and of a chain whose beginning was removed.
    [
      new TestChain("acme", 12),
      {
        heads: { events: 10, traces: 9 },
        facts: traces.slice(0, 9),
        rotation: { before: replacedSigner, ...HANDED_OVER }
      }
    ],
    [erased, { removedEvents: 5, checkpoints: [7, 11], rotation: { before: replacedSigner } }],
    // Made before the change of keys, which only those know who are given fresh keys.
    [new TestChain("acme", HANDED_OVER.events), { signer: replacedSigner, checkpoints: [4] }]
  ] as const
  return Promise.all(
    wishes.map(async ([chain, wish], at) => {
      const hasTraces = at >= FIRST_WITH_TRACES && at !== wishes.length - 1
      const world = new PackWorld(chain, hasTraces ? traces : [])
      const pack = new PackEditor(await world.pack(wish))
      for (const name of pack.files.keys()) {
        if (/^(?:verify\.|schema\/|README)/.test(name)) pack.remove(name)
      }
      const by = at === wishes.length - 1 ? replacedSigner : signer
      const zip = sign(pack.settle(), chain.tenantId, by).zip()
      return at < FIRST_ROTATED ? plainBase(chain, zip) : rotatedBase(chain, zip)
    })
  )
}

/** JSON texts, some of which no program may take and some of which programs take differently. */
const values: ReadonlyArray<string> = [
  "null",
  "true",
  "false",
  "0",
  "-0",
  "1",
  "2",
  "1.0",
  "2e0",
  "-1",
  "0.5",
  "1e400",
  "1e21",
  "5e-324",
  "9007199254740991",
  "9007199254740993",
  "123456789012345678901234567890",
  "1".repeat(400),
  `1${"0".repeat(5_000)}`,
  "01",
  "1.",
  "NaN",
  "Infinity",
  '""',
  '"x"',
  '"\\ud800"',
  '"\\u0000"',
  '"\\u0061"',
  '"\u2028"',
  '"\u0085"',
  '"\ufeff"',
  '"😀"',
  '"\ufb33"',
  "[]",
  "{}",
  "[null]",
  '["x"]',
  '{"__proto__":1}',
  '{"a":1,"a":2}',
  "[".repeat(200) + "]".repeat(200),
  "[".repeat(60) + "]".repeat(60),
  `"${"0".repeat(64)}"`,
  `["${"0".repeat(64)}"]`,
  '"1970-01-01T00:00:00.000000Z"',
  '"\\"',
  "'x'",
  "{",
  ""
]

const junkLines: ReadonlyArray<string> = [
  "",
  " ",
  "{}",
  "[]",
  "null",
  "{",
  '{"sequence_number":3}',
  '{"sequence_number":99999999999999999999',
  '"sequence_number":7',
  '"sequence_number":7,\r"sequence_number":8x',
  "\u2028",
  "\ufeff{}",
  "x".repeat(3_000)
]

/** Each change of one file's text; undefined if it does not suit the file. */
type TextChange = (dice: Dice, text: string) => string | undefined

const atLine = (dice: Dice, text: string, change: (lines: Array<string>, at: number) => void) => {
  const lines = text.split("\n")
  change(lines, dice.below(Math.max(1, lines.length - 1)))
  return lines.join("\n")
}

/** Places of the values of a JSON text, as far as they are plain. */
const valuesOf = (text: string): ReadonlyArray<RegExpExecArray> => {
  const value = String.raw`"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null|\{\}|\[\]`
  const place = new RegExp(String.raw`(?<=[:[,]\s{0,20})(?:${value})(?=\s{0,20}[,\]}])`, "g")
  return [...text.matchAll(place)]
}

const membersOf = (text: string): ReadonlyArray<RegExpExecArray> => [
  ...text.matchAll(/"[a-z_]+":\s?(?:"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null)/g)
]

const replaced = (text: string, found: RegExpExecArray, by: string): string =>
  text.slice(0, found.index) + by + text.slice(found.index + found[0].length)

const onOneLine =
  (change: (dice: Dice, line: string) => string | undefined): TextChange =>
  (dice, text) => {
    // A file of one JSON text over many lines is one line here.
    if (text.startsWith("{\n")) return change(dice, text)
    const lines = text.split("\n")
    const at = dice.below(Math.max(1, lines.length - 1))
    const line = change(dice, lines[at]!)
    if (line === undefined) return undefined
    lines[at] = line
    return lines.join("\n")
  }

const textChanges: Readonly<Record<string, TextChange>> = {
  "line dropped": (dice, text) => atLine(dice, text, (lines, at) => lines.splice(at, 1)),
  "line twice": (dice, text) => atLine(dice, text, (lines, at) => lines.splice(at, 0, lines[at]!)),
  "line elsewhere": (dice, text) =>
    atLine(dice, text, (lines, at) => {
      const [line] = lines.splice(at, 1)
      lines.splice(dice.below(lines.length), 0, line!)
    }),
  "lines reversed": (_, text) => `${text.split("\n").slice(0, -1).reverse().join("\n")}\n`,
  "line of junk": (dice, text) =>
    atLine(dice, text, (lines, at) => lines.splice(at, dice.below(2), dice.one(junkLines))),
  "line cut": onOneLine((dice, line) => line.slice(0, dice.below(line.length + 1))),
  "file cut": (dice, text) => text.slice(0, dice.below(text.length + 1)),
  "no line feed at the end": (_, text) => text.replace(/\n$/, ""),
  "carriage returns": (_, text) => text.replaceAll("\n", "\r\n"),
  "byte order mark": (_, text) => `\ufeff${text}`,
  empty: () => "",
  value: onOneLine((dice, line) => {
    const found = valuesOf(line)
    return found.length === 0 ? undefined : replaced(line, dice.one(found), dice.one(values))
  }),
  "value of another place": onOneLine((dice, line) => {
    const found = valuesOf(line)
    return found.length === 0 ? undefined : replaced(line, dice.one(found), dice.one(found)[0])
  }),
  "number off by one": onOneLine((dice, line) => {
    const found = valuesOf(line).filter(([value]) => /^[0-9]{1,9}$/.test(value))
    if (found.length === 0) return undefined
    const number = dice.one(found)
    return replaced(line, number, `${Number(number[0]) + (dice.once(2) ? 1 : -1)}`)
  }),
  character: onOneLine((dice, line) => {
    const at = dice.below(Math.max(1, line.length))
    const other = dice.one([...'0a"{}:, \\\u00e9\r+='])
    return line.slice(0, at) + other + line.slice(at + dice.below(2))
  }),
  "member dropped": onOneLine((dice, line) => {
    const found = membersOf(line)
    if (found.length === 0) return undefined
    const member = dice.one(found)
    const gone = replaced(line, member, "")
    return gone
      .replace(/,\s*,/, ",")
      .replace(/([{[])\s*,/, "$1")
      .replace(/,\s*([}\]])/, "$1")
  }),
  "member twice": onOneLine((dice, line) => {
    const found = membersOf(line)
    if (found.length === 0) return undefined
    const member = dice.one(found)
    const other = dice.once(2) ? member[0] : dice.one(found)[0]
    return replaced(line, member, `${other},${member[0]}`)
  }),
  "member more": onOneLine((dice, line) => {
    const found = membersOf(line)
    return found.length === 0
      ? undefined
      : replaced(line, found[0]!, `"more":${dice.one(values)},${found[0]![0]}`)
  }),
  space: onOneLine((dice, line) => {
    const at = line.indexOf(":") + 1
    const space = dice.one([" ", "\t", "\u00a0"])
    return at === 0 ? undefined : line.slice(0, at) + space + line.slice(at)
  }),
  escape: onOneLine((dice, line) => {
    const places = [...line.matchAll(/[a-z]/g)]
    if (places.length === 0) return undefined
    const letter = dice.one(places)
    const code = letter[0].charCodeAt(0).toString(16).padStart(4, "0")
    return replaced(line, letter, `\\u${code}`)
  })
}

const changeText = (dice: Dice, pack: PackEditor): string => {
  for (;;) {
    const name = dice.one([...pack.files.keys()])
    const kind = dice.one(Object.keys(textChanges))
    const text = textChanges[kind]!(dice, pack.text(name))
    if (text === undefined) continue
    pack.set(name, text)
    return `${kind} in ${name}`
  }
}

const otherNames: ReadonlyArray<string> = [
  "autorun.exe",
  "checkpoints/7.txt",
  "checkpoints/007.txt",
  "checkpoints/99999999999999999999.txt",
  "keys/other.txt",
  "Manifest.json",
  "events.ndjson.bak",
  "schema/x.json"
]

const changeFiles = (dice: Dice, pack: PackEditor): string => {
  const name = dice.one([...pack.files.keys()])
  const other = dice.one([...pack.files.keys()])
  const content = pack.files.get(name)!
  switch (dice.below(5)) {
    case 0:
      pack.remove(name)
      return `${name} removed`
    case 1: {
      const added = dice.one(otherNames)
      pack.set(added, dice.once(2) ? content : "x")
      return `${added} added`
    }
    case 2:
      pack.set(other, content)
      return `${other} is ${name}`
    case 3: {
      pack.remove(name)
      const renamed = dice.one(otherNames)
      pack.set(renamed, content)
      return `${name} renamed to ${renamed}`
    }
    default: {
      const bytes = Buffer.from(content)
      if (bytes.length === 0) return `${name} is empty`
      const at = dice.below(bytes.length)
      bytes[at] = dice.once(2) ? 0xff : bytes[at]! ^ (1 << dice.below(8))
      pack.set(name, bytes)
      return `a byte of ${name}`
    }
  }
}

/** Sums and manifest, and in the end the signature, as the one who changed the pack leaves them. */
const close = (
  dice: Dice,
  pack: PackEditor,
  { chain: { tenantId: tenant }, signers }: Base
): string => {
  try {
    switch (dice.below(5)) {
      case 0:
        return "nothing made to fit"
      case 1:
        pack.sums()
        return "sums made to fit"
      case 2:
        pack.settle()
        return "manifest made to fit"
      case 3:
        sign(pack.settle(), tenant)
        return "signed with the real key"
      default:
        sign(pack, tenant, dice.one(signers))
        return "manifest signed as it is"
    }
  } catch {
    // The manifest is no JSON any more.
    pack.sums()
    return "sums made to fit"
  }
}

const entriesOf = (pack: PackEditor): ReadonlyArray<RawEntry> =>
  [...pack.files].map(([name, content]) => ({ name, content }))

const JUNK = Buffer.from("junk in between")
const field = (id: number, length: number): Buffer => {
  const bytes = Buffer.alloc(4 + length)
  bytes.writeUInt16LE(id, 0)
  bytes.writeUInt16LE(length, 2)
  return bytes
}

/** Changes of one entry of a ZIP. */
const entryChanges: ReadonlyArray<(dice: Dice) => Partial<RawEntry>> = [
  () => ({ isStreamed: true }),
  () => ({ isStreamed: true, descriptor: { crc: 1 } }),
  () => ({ before: JUNK }),
  () => ({ padding: JUNK }),
  () => ({ isHidden: true }),
  (dice) => ({ local: { name: dice.one(["x", "../x", "manifest.json", "EVENTS.ndjson"]) } }),
  (dice) => ({
    name: dice.one(["x", "../x", "a/", "a//b", "manifest.json", "MANIFEST.json", "x."])
  }),
  () => ({ local: { crc: 7 } }),
  () => ({ central: { crc: 7 }, local: { crc: 7 } }),
  () => ({ local: { bytes: 7 } }),
  () => ({ central: { bytes: 7 }, local: { bytes: 7 } }),
  () => ({ central: { bytes: 0xffffffff } }),
  (dice) => ({ central: { flags: 1 << dice.below(16) } }),
  (dice) => {
    const flags = 1 << dice.below(16)
    return { central: { flags }, local: { flags } }
  },
  (dice) => {
    const method = dice.one([0, 8, 9, 12])
    return { central: { method }, local: { method } }
  },
  (dice) => ({ central: { extra: field(dice.one([1, 0x5455, 0x7075, 0xcafe]), dice.below(30)) } }),
  (dice) => ({ local: { extra: field(dice.one([1, 0x5455, 0x7075, 0xcafe]), dice.below(30)) } }),
  () => ({ central: { extra: Buffer.from([1, 0, 9]) } }),
  () => ({ central: { comment: "x" } }),
  (dice) => ({ central: { attributes: (dice.below(16) << 28) >>> 0 } })
]

const zipChanges: ReadonlyArray<(dice: Dice) => Partial<RawZip>> = [
  () => ({ comment: "a comment" }),
  () => ({ tail: JUNK }),
  () => ({ beforeDirectory: JUNK }),
  () => ({ afterDirectory: JUNK }),
  (dice) => ({ count: dice.below(20) })
]

const changeZip = (dice: Dice, pack: PackEditor): readonly [string, Buffer] => {
  const entries = [...entriesOf(pack)]
  if (dice.once(4)) {
    const at = dice.below(zipChanges.length)
    return [`change ${at} of the ZIP`, rawZip({ entries, ...zipChanges[at]!(dice) })]
  }
  if (dice.once(4)) {
    const bytes = Buffer.from(pack.zip())
    const at = dice.below(bytes.length)
    switch (dice.below(3)) {
      case 0:
        bytes[at] = bytes[at]! ^ (1 << dice.below(8))
        return [`byte ${at} of the ZIP`, bytes]
      case 1:
        return [`ZIP cut at ${at}`, bytes.subarray(0, at)]
      default:
        return [
          `bytes put in at ${at}`,
          Buffer.concat([bytes.subarray(0, at), JUNK, bytes.subarray(at)])
        ]
    }
  }
  const kind = dice.below(entryChanges.length)
  const at = dice.below(entries.length)
  const change = entryChanges[kind]!(dice)
  // Sometimes beside the entry, not in its place.
  if (dice.once(3)) entries.push({ ...entries[at]!, ...change })
  else entries[at] = { ...entries[at]!, ...change }
  return [`change ${kind} of the entry ${entries[at]!.name}`, rawZip({ entries })]
}

/** The pack of a seed. */
export const mutantOf = (seed: number, bases: ReadonlyArray<Base>): Mutant => {
  const dice = new Dice(seed)
  const base = dice.one(bases)
  const { chain, zip: original } = base
  const pack = new PackEditor(original)
  const given = dice.below(4)
  const isRotated = base.signers.includes(replacedSigner)
  // What fresh keys say of a replaced key is weighed against kept checkpoints.
  const hasKey = given === 1 || (isRotated && given === 3)
  const hasKept = given === 2 || (isRotated && given === 3)
  const key = hasKey ? dice.one(base.keys) : undefined
  const kept = hasKept ? [base.kept(1 + dice.below(chain.length))] : []
  const story: Array<string> = []
  const isOfZip = dice.once(4)
  const changes = isOfZip ? dice.below(2) : 1 + dice.below(2)
  for (let left = changes; left > 0; left--) {
    const change = dice.below(6)
    if (change === 0) story.push(changeFiles(dice, pack))
    else if (change === 1) story.push(changeClaims(dice, pack, chain))
    else story.push(changeText(dice, pack))
    if (pack.files.size === 0) break
  }
  story.push(close(dice, pack, base))
  const [ofZip, zip] = isOfZip ? changeZip(dice, pack) : (["", pack.zip()] as const)
  const before = new PackEditor(original).files
  const names = new Set([...before.keys(), ...pack.files.keys()])
  for (const name of ["sha256sums.txt", "manifest.sig"]) names.delete(name)
  const isChanged = [...names].some(
    (name) => before.get(name)?.equals(pack.files.get(name) ?? Buffer.from([0])) !== true
  )
  const isSigned = story.at(-1)!.includes("signed")
  const whole = [...story, ofZip].filter(Boolean).join("; ")
  return { seed, story: whole, zip, isChanged, isSigned, key, kept }
}
