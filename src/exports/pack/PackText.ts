/**
 * The texts of an evidence pack: what a person reads first, the manifest, its signature and the
 * sums. Pure functions of what the pack holds.
 */

import type { Chain } from "../../domain/chain/Chains.ts"
import { HASH_BYTES } from "../../domain/chain/MerkleTree.ts"
import { SCHEME } from "../../domain/events/HashChain.ts"
import { HISTORY_FROM, HISTORY_TO } from "../../domain/Timestamp.ts"
import { TRACE_SCHEME } from "../../domain/traces/FactText.ts"
import type { SequenceRange } from "../../ports/ChainRecompute.ts"
import type { VerifyReport } from "../../verify/Verifier.ts"
import { noticesOf } from "../../verify/VerifyReport.ts"
import { type Bounds, type ExportScope, exportFormats } from "../ExportScope.ts"
import type { Manifest, PackCounts, PackFile } from "./PackRecords.ts"

/** The files of a pack, and what their making has shown. */
export interface PackContents {
  readonly files: ReadonlyArray<PackFile>
  readonly counts: PackCounts
  /** The facts whose links are in the pack. */
  readonly traces: SequenceRange | undefined
  /** Size of the largest tree of each chain that a checkpoint in the pack is of. */
  readonly covered: Readonly<Record<Chain, number>>
  /** vkey of the key that signs the trees of the tenant. */
  readonly treeSigner: string | undefined
}

/**
 * The bounds of a pack. A chain may grow while it is made, and a checkpoint in it cover more than its
 * last event: then it does not claim to hold everything, and says where it ends.
 */
const packBounds = ({ bounds, verification }: ExportScope, { covered }: PackContents): Bounds => {
  const { last_sequence_number: last, valid } = verification
  const end = bounds.to_sequence ?? Infinity
  const hasGrown = valid && last !== null && last < Math.min(covered.events, end)
  return hasGrown && bounds.to === HISTORY_TO ? { ...bounds, to_sequence: last } : bounds
}

/** The same of the facts: the last one, or null where the pack holds them to the end. */
const traceEnd = ({ bounds, verification }: ExportScope, contents: PackContents): number | null => {
  const last = contents.traces?.last
  const isWhole = bounds.from === HISTORY_FROM && bounds.to === HISTORY_TO
  const hasGrown = verification.valid && last !== undefined && contents.covered.traces > last
  return isWhole && hasGrown ? last : null
}

/** `manifest.json`. */
export const manifestText = (
  scope: ExportScope,
  serviceName: string,
  contents: PackContents
): string => {
  const { counts, files, traces, treeSigner } = contents
  const { conditions, generatedAt, surroundings, tenantId, verification } = scope
  const { traceHead } = surroundings
  const manifest: Omit<Manifest, "filter"> & { readonly filter: unknown } = {
    format: exportFormats.pack,
    generated_at: generatedAt,
    service: serviceName,
    scheme: SCHEME,
    tenant_id: tenantId,
    bounds: packBounds(scope, contents),
    filter: conditions ?? null,
    first_sequence_number: verification.first_sequence_number,
    last_sequence_number: verification.last_sequence_number,
    head: verification.head,
    first_trace_sequence_number: traces?.first ?? null,
    last_trace_sequence_number: traces?.last ?? null,
    trace_head:
      traceHead === undefined
        ? null
        : { sequence_number: traceHead.sequence_number, hash: traceHead.hash },
    to_trace_sequence: traceEnd(scope, contents),
    tree_signer: treeSigner ?? null,
    counts,
    files
  }
  return `${JSON.stringify(manifest, null, 2)}\n`
}

/** `verification.json`. */
export const verificationText = (verification: VerifyReport): string =>
  `${JSON.stringify(verification, null, 2)}\n`

/** The same of a pack, with its bounds. */
export const packedVerification = (scope: ExportScope, contents: PackContents): string =>
  verificationText({ ...scope.verification, bounds: packBounds(scope, contents) })

/** The text that `manifest.sig` signs: a C2SP checkpoint whose tree is the manifest. */
export const signedText = (
  serviceName: string,
  tenantId: string,
  { bytes, sha256 }: PackFile
): string => {
  const digest = Buffer.from(sha256, "hex")
  if (digest.length !== HASH_BYTES) throw new Error("not a SHA-256")
  return `${serviceName}/${tenantId}/evidence-pack-v2\n${bytes}\n${digest.toString("base64")}\n`
}

/** `sha256sums.txt`, as `sha256sum -c` reads it. */
export const sumsText = (files: ReadonlyArray<PackFile>): string =>
  files.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join("")

/** `keys/jwks.json` (RFC 8037) of C2SP keys. */
export const jwksText = (vkeys: ReadonlyArray<string>): string => {
  const keys = vkeys.map((vkey) => {
    const [, kid = "", base64 = ""] = /^[^+]+\+([0-9a-f]{8})\+(\S+)$/u.exec(vkey) ?? []
    const raw = Buffer.from(base64, "base64").subarray(1)
    return {
      kty: "OKP",
      crv: "Ed25519",
      alg: "EdDSA",
      use: "sig",
      kid,
      x: raw.toString("base64url")
    }
  })
  return `${JSON.stringify({ keys }, null, 2)}\n`
}

const sequencesOf = ({ from_sequence: from, to_sequence: to }: Bounds): string =>
  from === null && to === null
    ? ""
    : `, sequences ${from === null ? "1" : from} to ${to === null ? "the newest" : to}`

const selectionOf = ({ conditions }: ExportScope): ReadonlyArray<string> =>
  conditions === undefined
    ? ["Events   every event of the period"]
    : [
        "Events   those that satisfy all of these conditions, exactly:",
        ...Object.entries(conditions).map(([name, value]) => `         ${name} = ${String(value)}`)
      ]

const tracesOf = (scope: ExportScope, contents: PackContents): ReadonlyArray<string> => {
  const end = traceEnd(scope, contents)
  if (scope.eventsOnly) return ["Traces   left out: these conditions select events"]
  return end === null ? [] : [`Traces   facts 1 to ${end}`]
}

const noticeLinesOf = ({ verification }: ExportScope): ReadonlyArray<string> => {
  const notices = noticesOf(verification)
  return notices.length === 0
    ? []
    : [
        "Notices  not established, as the service itself found:",
        ...notices.map((notice) => `         ${notice}`)
      ]
}

/** A client's text on a line of its own: no line feed of it may look like one of ours. */
const oneLine = (text: string): string =>
  text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/gu, "\ufffd")

/** The part of README.txt before the list of files. */
const USAGE = `
Check it yourself. Nothing has to be installed and nothing is sent anywhere:

  node verify.mjs          with Node 20 or later
  python3 verify.py        with Python 3.8 or later
  verify.html              in a browser: open it from the disk and choose the ZIP
  sha256sum -c sha256sums.txt

The programs also take the name of a ZIP or of a folder. Their verdicts and exit codes:

  authentic    0  everything agrees, and a key or checkpoint that you gave shows who made it
  consistent   0  everything agrees; who made it is not shown (3 with --require-origin)
  tampered     1  something does not agree
  unreadable   2  there is no verdict on its content

A pack can't show its own origin: anyone can make one with a key of their own, and the
verifiers in this pack come from the maker of the pack. Where that matters, take a verifier
from a release of alk (alk verify, or the same three files), or ask the service itself
(GET /v1/verify). What shows the origin must come from elsewhere: the service's public key,
from the service (/.well-known/alk-keys.json), or a signed checkpoint that you kept:

  python3 verify.py --public-key alk-keys.json --checkpoint checkpoint.txt --require-origin

WHAT IS IN IT

`

/** The rest of README.txt, from the second line of that list on. */
const EXPLANATION = `  verification.json   what the service itself found when it recomputed the chain
  events.ndjson       the events, one a line, ascending, exactly as they are stored
  links.ndjson        the links of the whole chain from the first to the last of them
  erasures.ndjson     the events that erased details of events in that part of the chain
  executions.ndjson   execution traces that overlap the period, and
  spans.ndjson        their spans, both as
  facts.ndjson        their facts say it, one a line, ascending, exactly as they are stored
  trace-links.ndjson  the links of the chain of facts from the first to the last of them
  checkpoints/        signed checkpoints of the Merkle trees of both chains, and what ties
                      the links to them; hand-over-N.txt and traces-hand-over-N.txt: the last
                      ones of the N-th key, which name the key that follows it
  keys/               the service's public keys in the order of their publication, and
                      endorsement-N.txt: the statement of the key before it for the N-th one
  schema/             JSON Schemas of the files
  manifest.json       what this pack is, and the SHA-256 of each file
  manifest.sig        the service's signature over it

HOW IT HOLDS TOGETHER

Each event has a content_hash: SHA-256 of its fields in canonical JSON (RFC 8785); email,
name and metadata enter through a salted details_hash, so that they can be erased without
breaking the chain. Each link has hash = SHA-256 of

  ${SCHEME} LF tenant LF sequence_number LF created_at LF content_hash LF prev_hash

and prev_hash is the hash of the link before it (64 zeros for the first). The hashes are the
leaves of a Merkle tree (RFC 9162); checkpoints are its roots, signed with Ed25519 as C2SP
notes. manifest.sig is such a note too: its size and root are the bytes and the SHA-256 of
manifest.json.

When the service changes its key, the old one signs that the new one follows it, and a last
checkpoint of each tree. From then on the old key may sign no larger tree, and a manifest that
it signs shows no origin by itself: the verifiers follow this line of keys from the keys that
they are given, and list it.

Facts of execution traces are the same under the scheme ${TRACE_SCHEME}, in a chain and a
tree of their own: chain_sequence is their place in it, fact_number counts from 1 in each
execution.

An event without its details is accepted only if erasures.ndjson holds a chained event
that names its sequence number and content_hash. verified_at in verification.json is the time
of this export, and duration_ms is left at 0, so that equal content gives equal bytes.
`

/** `README.txt`. */
export const readmeText = (scope: ExportScope, contents: PackContents, hasPdf: boolean): string => {
  const bounds = packBounds(scope, contents)
  const opening = [
    "EVIDENCE PACK",
    "",
    `Tenant   ${scope.tenantId}`,
    `Period   ${bounds.from} to ${bounds.to} (UTC, inclusive)${sequencesOf(bounds)}`,
    ...selectionOf(scope),
    ...tracesOf(scope, contents),
    ...noticeLinesOf(scope)
  ]
  const pdf = hasPdf ? "  evidence.pdf        the report for people\n" : ""
  return `${opening.map(oneLine).join("\n")}\n${USAGE}${pdf}${EXPLANATION}`
}
