#!/usr/bin/env node
/**
 * Checks an alk evidence pack offline: node verify.mjs [pack.zip | folder]. Plain Node 18 or later
 * and nothing else; it shares no code with the service that wrote the pack and asks no network.
 * The part between the two marks is also what browsers run: verify.html, and browser.mjs.
 */
import crypto from "node:crypto"
import { createReadStream, existsSync, realpathSync } from "node:fs"
import { open, readdir, readFile, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { createInflateRaw } from "node:zlib"

// ---- checks: begin ----
const FORMAT = "alk-evidence-pack-v2"
const SCHEME = "alk-chain-v1"
const TRACE_SCHEME = "alk-trace-v1"
const GENESIS_HASH = "0".repeat(64)
const ERASURE_ACTION = "alk.event.erased"
const HISTORY_FROM = "1970-01-01T00:00:00.000000Z"
const HISTORY_TO = "2261-12-31T23:59:59.999999Z"
/** Problems that a report lists; it counts them all. */
const PROBLEMS_MAX = 100
/** Notices of the service that a report lists of each chain, and characters of one. */
const NOTICES_MAX = 20
const NOTICE_LENGTH_MAX = 400
/** Bytes of one line, and of one file that is read as a whole. */
const LINE_BYTES_MAX = 1_048_576
const SMALL_FILE_BYTES_MAX = 16_777_216
/** Files of a ZIP or folder: a pack has fewer than a hundred. */
const FILES_MAX = 1_000
/** Levels of nested objects and arrays in one JSON text: the service stores at most 66. */
const DEPTH_MAX = 128
/** Bytes of a signed note or of a text with keys, signatures of one note, keys in one text. */
const NOTE_BYTES_MAX = 65_536
const SIGNATURES_MAX = 16
const KEYS_MAX = 256
const MANIFEST = "manifest.json"
const SIGNATURE = "manifest.sig"
const SUMS = "sha256sums.txt"
const VERIFICATION = "verification.json"
const EVENTS = "events.ndjson"
const LINKS = "links.ndjson"
const ERASURES = "erasures.ndjson"
const TREE = "checkpoints/tree.json"
const PROOFS = "checkpoints/erasure-proofs.ndjson"
const FACTS = "facts.ndjson"
const TRACE_LINKS = "trace-links.ndjson"
const TRACE_TREE = "checkpoints/traces-tree.json"
const EXECUTIONS = "executions.ndjson"
const SPANS = "spans.ndjson"
const KEYS = "keys/vkeys.txt"
/** The statement with which a key endorsed the n-th one of vkeys.txt. */
const endorsementName = (n) => `keys/endorsement-${n}.txt`
const NOTE_NAME = /^checkpoints\/([0-9]{1,15})\.txt$/
const TRACE_NOTE_NAME = /^checkpoints\/traces-([0-9]{1,15})\.txt$/
/** The last checkpoint of the n-th key of vkeys.txt: it hands the tree over to the next key. */
const HAND_OVER_NAME = /^checkpoints\/hand-over-([0-9]{1,15})\.txt$/
const TRACE_HAND_OVER_NAME = /^checkpoints\/traces-hand-over-([0-9]{1,15})\.txt$/
const PDF = "evidence.pdf"
/** What every pack has; without one of them there is nothing to hold the rest against. */
const REQUIRED = [
  MANIFEST,
  SIGNATURE,
  SUMS,
  VERIFICATION,
  EVENTS,
  LINKS,
  ERASURES,
  TREE,
  PROOFS,
  FACTS,
  TRACE_LINKS,
  TRACE_TREE,
  EXECUTIONS,
  SPANS,
  KEYS
]

/** The pack can't be read at all: no verdict on its content. */
class Unreadable extends Error {}

// Bytes and texts

const HEX = /^[0-9a-f]{64}$/
const utf8 = new TextEncoder()
const fromUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const HEX_OF_BYTE = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))
const bytesOfHex = (hex) => {
  const bytes = new Uint8Array(hex.length / 2)
  for (let at = 0; at < bytes.length; at++) bytes[at] = parseInt(hex.substr(2 * at, 2), 16)
  return bytes
}
const hexOf = (bytes) => {
  let hex = ""
  for (let at = 0; at < bytes.length; at++) hex += HEX_OF_BYTE[bytes[at]]
  return hex
}
const concat = (...parts) => {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
/** Undefined unless it is the one standard spelling. */
const bytesOfBase64 = (text) => {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) return undefined
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
  return btoa(String.fromCharCode(...bytes)) === text ? bytes : undefined
}
const isHash = (value) => typeof value === "string" && HEX.test(value)
/**
 * True if the name is a relative path that every file system takes as it is: letters, digits and
 * "._-", no empty segment, none that ends with a dot.
 */
const isSafeName = (name) =>
  name.length <= 255
  && name.split("/").every((part) => /^[A-Za-z0-9._-]+$/.test(part) && !part.endsWith("."))
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value)
const isSequence = (value) => Number.isSafeInteger(value) && value >= 1
const isSize = (value) => Number.isSafeInteger(value) && value >= 0
const SEQUENCE_MAX = Number.MAX_SAFE_INTEGER

// JSON

const isSpace = (code) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
const isDigit = (code) => code >= 0x30 && code <= 0x39

/** The place of the quote that ends the string with a backslash at `slash`; -1 without one. */
const endOfString = (text, slash) => {
  let quote = text.indexOf('"', slash)
  while (quote !== -1) {
    let before = quote
    while (before > slash && text[before - 1] === "\\") before -= 1
    if ((quote - before) % 2 === 0) return quote
    quote = text.indexOf('"', quote + 1)
  }
  return -1
}

/** True if a key is written with an escape; a backslash is in a string, a key before a colon. */
const hasEscapedKey = (text) => {
  let slash = text.indexOf("\\")
  while (slash !== -1) {
    let at = endOfString(text, slash) + 1
    if (at === 0) return false
    while (isSpace(text.charCodeAt(at))) at += 1
    if (text[at] === ":") return true
    slash = text.indexOf("\\", at)
  }
  return false
}

const UNFINISHED = Symbol("unfinished")

/** Reads JSON as JSON.parse has to, in linear time and without recursion. */
class JsonReader {
  constructor(text) {
    this.text = text
    this.at = 0
    this.containers = []
    this.keys = []
  }

  read() {
    this.skipSpace()
    let value = this.begin()
    while (value === UNFINISHED || this.containers.length > 0) {
      value = value === UNFINISHED ? this.begin() : this.place(value)
    }
    this.skipSpace()
    if (this.at < this.text.length) this.refuse()
    return value
  }

  refuse() {
    throw new SyntaxError(`no JSON at position ${this.at}`)
  }

  code() {
    return this.text.charCodeAt(this.at)
  }

  skipSpace() {
    while (isSpace(this.code())) this.at += 1
  }

  take(character) {
    if (this.text[this.at] !== character) return false
    this.at += 1
    return true
  }

  /** A value, or UNFINISHED where the first one of a container follows. */
  begin() {
    const first = this.text[this.at]
    if (first === '"') return this.string()
    if (first !== "{" && first !== "[") return this.numberOrLiteral()
    this.at += 1
    this.skipSpace()
    const container = first === "{" ? {} : []
    if (this.take(first === "{" ? "}" : "]")) return container
    this.containers.push(container)
    this.keys.push(first === "{" ? this.key() : undefined)
    return UNFINISHED
  }

  /** Put a value into its container: the container if it ends there, else UNFINISHED. */
  place(value) {
    const top = this.containers.length - 1
    const container = this.containers[top]
    const key = this.keys[top]
    if (key === undefined) container.push(value)
    else if (key !== "__proto__") container[key] = value
    else
      Object.defineProperty(container, key, {
        value,
        writable: true,
        enumerable: true,
        configurable: true
      })
    this.skipSpace()
    if (this.take(",")) {
      this.skipSpace()
      if (key !== undefined) this.keys[top] = this.key()
      return UNFINISHED
    }
    if (!this.take(key === undefined ? "]" : "}")) this.refuse()
    this.containers.pop()
    this.keys.pop()
    return container
  }

  key() {
    if (this.text[this.at] !== '"') this.refuse()
    const key = this.string()
    this.skipSpace()
    if (!this.take(":")) this.refuse()
    this.skipSpace()
    return key
  }

  string() {
    const start = this.at
    let isEscaped = false
    this.at += 1
    while (this.code() !== 0x22) {
      if (this.code() === 0x5c) {
        isEscaped = true
        this.at += 2
      } else if (this.code() >= 0x20) this.at += 1
      else this.refuse()
    }
    this.at += 1
    const literal = this.text.slice(start, this.at)
    return isEscaped ? JSON.parse(literal) : literal.slice(1, -1)
  }

  digits() {
    if (!isDigit(this.code())) this.refuse()
    while (isDigit(this.code())) this.at += 1
  }

  numberOrLiteral() {
    for (const [word, value] of [
      ["true", true],
      ["false", false],
      ["null", null]
    ]) {
      if (!this.text.startsWith(word, this.at)) continue
      this.at += word.length
      return value
    }
    const start = this.at
    this.take("-")
    if (!this.take("0")) this.digits()
    if (this.take(".")) this.digits()
    if (this.take("e") || this.take("E")) {
      if (!this.take("+")) this.take("-")
      this.digits()
    }
    return Number(this.text.slice(start, this.at))
  }
}

/** True if more than `max` characters of the text are this one. */
const hasMore = (text, character, max) => {
  let count = 0
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) {
    count += 1
    if (count > max) return true
  }
  return false
}

/** True if objects and arrays are nested deeper than DEPTH_MAX. */
const isTooDeep = (text) => {
  const half = DEPTH_MAX / 2
  if (!hasMore(text, "{", half) && !hasMore(text, "[", half)) return false
  let depth = 0
  let isText = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (isText) {
      if (character === "\\") at += 1
      else if (character === '"') isText = false
    } else if (character === '"') isText = true
    else if (character === "{" || character === "[") {
      depth += 1
      if (depth > DEPTH_MAX) return true
    } else if (character === "}" || character === "]") depth -= 1
  }
  return false
}

/**
 * The value of a JSON text. V8 may give a key that is written with an escape the name of another
 * object's key (nodejs/node#63785): such a text is not for its JSON.parse.
 */
const parseJson = (text) => {
  if (isTooDeep(text)) throw new SyntaxError("nested too deep")
  return hasEscapedKey(text) ? new JsonReader(text).read() : JSON.parse(text)
}

// RFC 8785

class NotCanonical extends Error {}

const quote = (text) => {
  if (/[\ud800-\udfff]/u.test(text)) throw new NotCanonical("an unpaired surrogate")
  return JSON.stringify(text)
}

const canonical = (value) => {
  if (typeof value === "string") return quote(value)
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new NotCanonical("no JSON number")
    return String(value)
  }
  if (value === null || typeof value === "boolean") return String(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  const keys = Object.keys(value).sort()
  return `{${keys.map((key) => `${quote(key)}:${canonical(value[key])}`).join(",")}}`
}

// The chain

const detailsOf = (event) => {
  const details = {}
  if (event.actor.email !== undefined) details.actor_email = event.actor.email
  if (event.metadata !== undefined) details.metadata = event.metadata
  if (event.resource.name !== undefined) details.resource_name = event.resource.name
  return Object.keys(details).length === 0 ? undefined : details
}

const coreOf = (event, detailsHash) => ({
  action: event.action,
  actor: { id: event.actor.id, type: event.actor.type },
  ...(detailsHash === undefined ? {} : { details_hash: detailsHash }),
  id: event.id,
  outcome: event.outcome,
  resource: { id: event.resource.id, type: event.resource.type },
  timestamp: event.timestamp
})

const linkText = (scheme, tenant, link, contentHash) =>
  [scheme, tenant, link.sequence_number, link.created_at, contentHash, link.prev_hash].join("\n")

const membersText = (source, names, inner = canonical) =>
  names
    .filter((name) => source[name] !== undefined)
    .map((name) => `"${name}":${inner(source[name], name)}`)
    .join(",")

const EVENT_MEMBERS = [
  "id",
  "timestamp",
  "actor",
  "action",
  "resource",
  "outcome",
  "metadata",
  "tenant_id",
  "sequence_number",
  "created_at",
  "prev_hash",
  "details_salt",
  "details_hash",
  "content_hash",
  "hash",
  "erased_at"
]
const LINK_MEMBERS = ["sequence_number", "created_at", "content_hash", "prev_hash", "hash"]

/** The one text that an event is stored as. */
const storedText = (event) =>
  `{${membersText(event, EVENT_MEMBERS, (value, name) => {
    if (name === "actor") return `{${membersText(value, ["id", "type", "email"])}}`
    if (name === "resource") return `{${membersText(value, ["id", "type", "name"])}}`
    return canonical(value)
  })}}`

const areStrings = (object, ...names) => names.every((name) => typeof object[name] === "string")
const areStringsOrAbsent = (object, ...names) =>
  names.every((name) => object[name] === undefined || typeof object[name] === "string")

const isEvent = (value) =>
  isObject(value)
  && areStrings(
    value,
    "id",
    "timestamp",
    "action",
    "outcome",
    "tenant_id",
    "created_at",
    "prev_hash",
    "content_hash",
    "hash"
  )
  && areStringsOrAbsent(value, "details_salt", "details_hash", "erased_at")
  && isSequence(value.sequence_number)
  && isObject(value.actor)
  && areStrings(value.actor, "id", "type")
  && areStringsOrAbsent(value.actor, "email")
  && isObject(value.resource)
  && areStrings(value.resource, "id", "type")
  && areStringsOrAbsent(value.resource, "name")
  && (value.metadata === undefined || isObject(value.metadata))

const isLink = (value) =>
  isObject(value)
  && areStrings(value, "created_at", "content_hash", "prev_hash", "hash")
  && isSequence(value.sequence_number)
  && isHash(value.hash)

/** True if the line is the very text that a link is written as. */
const isLinkText = (value, line) => {
  try {
    return isLink(value) && `{${membersText(value, LINK_MEMBERS)}}` === line
  } catch {
    return false
  }
}

const shown = (value) => {
  if (value === undefined || value === null) return "none"
  return typeof value === "string" ? value : canonical(value)
}
const fault = (reason, expected, actual) => ({ reason, expected, actual })
const wrong = (what, expected, actual) =>
  fault("content_mismatch", `${what} ${shown(expected)}`, `${what} ${shown(actual)}`)

/**
 * What is wrong with an event by itself, or undefined. `erasure`: the erasure that names its
 * sequence and its content hash, if there is one.
 */
const faultOf = (line, event, tenant, erasure, sha256) => {
  if (event.tenant_id !== tenant) return wrong("tenant", tenant, event.tenant_id)
  const details = detailsOf(event)
  const detailsHash = details && sha256(`${event.details_salt ?? ""}\n${canonical(details)}`)
  const mayBeGone = erasure !== undefined && erasure.contentHash === event.content_hash
  const areGone = mayBeGone && details === undefined
  if (event.details_hash !== detailsHash && !areGone) {
    return wrong("details_hash", event.details_hash, detailsHash)
  }
  if (event.details_salt !== undefined && details === undefined) {
    return wrong("details_salt", undefined, event.details_salt)
  }
  if (event.erased_at !== undefined && !(areGone && erasure.times.includes(event.erased_at))) {
    return wrong("erased_at", areGone ? erasure.times[0] : undefined, event.erased_at)
  }
  const contentHash = sha256(canonical(coreOf(event, event.details_hash)))
  if (event.content_hash !== contentHash) {
    return wrong("content_hash", event.content_hash, contentHash)
  }
  const hash = sha256(linkText(SCHEME, tenant, event, contentHash))
  if (event.hash !== hash) return fault("hash_mismatch", hash, event.hash)
  return storedText(event) === line
    ? undefined
    : fault(
        "content_mismatch",
        "the bytes that the service writes for this event",
        "the same event in other bytes, or with members that no hash covers"
      )
}

const SEQUENCE_MEMBER = '"sequence_number":'
const SAID_DIGITS_MAX = 15

/** The last sequence number in a line that is no event, at most SAID_DIGITS_MAX digits; or 0. */
const saidSequence = (line) => {
  const place = line.lastIndexOf(SEQUENCE_MEMBER)
  if (place === -1) return 0
  const start = place + SEQUENCE_MEMBER.length
  let end = start
  while (end < start + SAID_DIGITS_MAX && isDigit(line.charCodeAt(end))) end += 1
  return Number(line.slice(start, end))
}

/** Digits in a row that a finite number has at most, roughly. */
const LONG_NUMBER_DIGITS = 300

/** True if that many digits are in a row; looks at one character of each possible place. */
const hasLongNumber = (line) => {
  for (let at = LONG_NUMBER_DIGITS - 1; at < line.length; at += LONG_NUMBER_DIGITS) {
    if (!isDigit(line.charCodeAt(at))) continue
    let [start, end] = [at, at + 1]
    while (at - start < LONG_NUMBER_DIGITS && isDigit(line.charCodeAt(start - 1))) start -= 1
    while (end - at < LONG_NUMBER_DIGITS && isDigit(line.charCodeAt(end))) end += 1
    if (end - start >= LONG_NUMBER_DIGITS) return true
  }
  return false
}

/** True if the value has an RFC 8785 text. */
const isCanonical = (value) => {
  try {
    canonical(value)
    return true
  } catch {
    return false
  }
}

/** The JSON value of a line that meets `is` and has an RFC 8785 text; else undefined. */
const jsonOfLine = (line, is) => {
  try {
    const value = parseJson(line)
    if (!is(value)) return undefined
    // Only an escape can be an unpaired surrogate, only such numbers can be too large.
    if (/\\u|[0-9][eE]/.test(line) || hasLongNumber(line)) canonical(value)
    return value
  } catch {
    return undefined
  }
}

/** The event of a line, or undefined if it is none. */
const eventOf = (line) => jsonOfLine(line, isEvent)

// Trace facts (alk-trace-v1)

/** The members of each type's core besides execution_id, fact_number, type and details_hash. */
const FACT_CORES = {
  "execution.started": [
    "agent_id",
    "provisional",
    "root_span_id",
    "source",
    "started_at",
    "started_at_given"
  ],
  "execution.ended": ["ended_at", "status"],
  "execution.resumed": [],
  "execution.erased": ["erased_by", "reason"],
  "span.started": [
    "caused_by_span_ids",
    "parent_span_id",
    "span_id",
    "span_type",
    "started_at",
    "started_at_given"
  ],
  "span.ended": ["ended_at", "span_id", "status"],
  "span.amended": ["parent_span_id", "shared_span_id", "span_id"],
  "span.event": ["event_id", "event_type", "sequence_number", "span_id", "timestamp"],
  "span.payload": ["span_id"]
}
const FACT_COMMON = ["details_hash", "execution_id", "fact_number", "type"]
/** What follows the core in a stored fact. */
const FACT_SUFFIX = [
  "details",
  "details_salt",
  "tenant_id",
  "chain_sequence",
  "created_at",
  "prev_hash",
  "content_hash",
  "hash",
  "erased_at"
]
const OPTIONAL_STRINGS = [
  "parent_span_id",
  "shared_span_id",
  "details_salt",
  "details_hash",
  "erased_at"
]
const NO_STRINGS = ["provisional", "started_at_given", "caused_by_span_ids", "sequence_number"]

const isDetails = (value) =>
  isObject(value)
  && areStringsOrAbsent(value, "agent_name", "name", "trigger")
  && (value.metadata === undefined || isObject(value.metadata))

const isFact = (value) => {
  if (!isObject(value) || typeof value.type !== "string") return false
  const core = Object.hasOwn(FACT_CORES, value.type) ? FACT_CORES[value.type] : undefined
  if (core === undefined) return false
  const strings = core.filter(
    (name) => !OPTIONAL_STRINGS.includes(name) && !NO_STRINGS.includes(name)
  )
  const causes = value.caused_by_span_ids
  return (
    areStrings(
      value,
      "execution_id",
      "tenant_id",
      "created_at",
      "prev_hash",
      "content_hash",
      "hash",
      ...strings
    )
    && areStringsOrAbsent(value, ...OPTIONAL_STRINGS)
    && isSequence(value.fact_number)
    && isSequence(value.chain_sequence)
    && (!core.includes("sequence_number") || isSequence(value.sequence_number))
    && (!core.includes("started_at_given") || typeof value.started_at_given === "boolean")
    && (value.provisional === undefined || value.provisional === true)
    && (!core.includes("caused_by_span_ids")
      || (Array.isArray(causes) && causes.every((cause) => typeof cause === "string")))
    && (value.details === undefined || isDetails(value.details))
  )
}

const factCoreText = (fact, detailsHash) => {
  const core = { ...fact, details_hash: detailsHash }
  return `{${membersText(core, [...FACT_CORES[fact.type], ...FACT_COMMON].sort())}}`
}

/** The one text that a fact is stored as. */
const storedFactText = (fact) =>
  `${factCoreText(fact, fact.details_hash).slice(0, -1)},${membersText(fact, FACT_SUFFIX)}}`

/** The fact of a line, or undefined if it is none. */
const factOf = (line) => jsonOfLine(line, isFact)

/** What is wrong with a fact by itself, or undefined. If its details may be gone is seen later. */
const factFaultOf = (line, fact, tenant, sha256) => {
  if (fact.tenant_id !== tenant) return wrong("tenant", tenant, fact.tenant_id)
  const { details } = fact
  const detailsHash = details && sha256(`${fact.details_salt ?? ""}\n${canonical(details)}`)
  const areGone = fact.erased_at !== undefined && details === undefined
  if (fact.details_hash !== detailsHash && !areGone) {
    return wrong("details_hash", fact.details_hash, detailsHash)
  }
  if (fact.details_salt !== undefined && details === undefined) {
    return wrong("details_salt", undefined, fact.details_salt)
  }
  if (fact.erased_at !== undefined && !areGone) return wrong("erased_at", undefined, fact.erased_at)
  const contentHash = sha256(factCoreText(fact, fact.details_hash))
  if (fact.content_hash !== contentHash) {
    return wrong("content_hash", fact.content_hash, contentHash)
  }
  const link = { ...fact, sequence_number: fact.chain_sequence }
  const hash = sha256(linkText(TRACE_SCHEME, tenant, link, contentHash))
  if (fact.hash !== hash) return fault("hash_mismatch", hash, fact.hash)
  return storedFactText(fact) === line
    ? undefined
    : fault(
        "content_mismatch",
        "the bytes that the service writes for this fact",
        "the same fact in other bytes, or with members that no hash covers"
      )
}

/** The parts of a shown execution or span that come out of details, which may be long. */
const DETAIL_MEMBERS = ["agent_name", "error", "metadata", "name", "trigger"]

/** Said of spans that were sent again with other content, and of two with one id. */
const AMENDMENTS = [
  { code: "other_content", path: "span" },
  { code: "shared_id", path: "span_id" }
]

const amend = ({ core, said }, { parent_span_id: parent, shared_span_id: shared }) => {
  if (parent !== undefined) core.parent_span_id = parent
  if (shared !== undefined) said.add("shared_id")
  else if (parent === undefined) said.add("other_content")
}

const NO_VALUE = {}

const REFERENCE = /^sha256:[0-9a-f]{64}$/

/** The values that metadata of an event refers to, each by the SHA-256 in its reference. */
const referencesOf = (metadata) => {
  const places = isObject(metadata) ? [metadata, ...Object.values(metadata)] : []
  return places
    .map((place) => (isObject(place) ? place.$ref : undefined))
    .filter((name) => typeof name === "string" && REFERENCE.test(name))
}

/** Facts of an execution that only holds values of an event: it is in no list. */
const HOLDING_FACTS = ["span.payload", "execution.erased"]

/** A piece of a value that has no room in its span. */
const isPiece = (value) =>
  isObject(value)
  && areStrings(value, "sha256", "text")
  && isSequence(value.chunk)
  && isSequence(value.chunks)

/**
 * What the facts of one execution add up to. Long texts of spans that have ended are kept as their
 * hashes only, so memory grows with the number of spans and not with what they say.
 */
class Execution {
  constructor(sha256) {
    this.sha256 = sha256
    this.facts = 0
    this.spans = new Map()
    /** Sequence of the first and number of the last fact without details, by time of erasure. */
    this.undetailed = new Map()
    /** The pieces so far of a value that is not whole yet. */
    this.value = NO_VALUE
    /** References to the values that are. */
    this.values = []
    this.onlyHolds = true
  }

  take(fact) {
    const { details = {} } = fact
    this.onlyHolds &&= HOLDING_FACTS.includes(fact.type)
    switch (fact.type) {
      case "execution.started":
        this.createdAt ??= fact.created_at
        this.started = fact
        return
      case "execution.ended":
        this.ended = fact
        return
      case "execution.resumed":
        this.ended = undefined
        return
      case "execution.erased":
        this.erasedAt = fact.created_at
        return
      case "span.started":
        this.spans.set(fact.span_id, {
          core: {
            id: fact.span_id,
            execution_id: fact.execution_id,
            parent_span_id: fact.parent_span_id,
            caused_by_span_ids: fact.caused_by_span_ids,
            span_type: fact.span_type,
            started_at: fact.started_at,
            erased_at: fact.erased_at,
            repairs: details.repairs
          },
          said: this.spans.get(fact.span_id)?.said ?? new Set(),
          long: { name: details.name ?? "", metadata: details.metadata ?? {} }
        })
        return
      case "span.amended": {
        const span = this.spans.get(fact.span_id)
        if (span !== undefined) amend(span, fact)
        return
      }
      case "span.ended": {
        const span = this.spans.get(fact.span_id)
        if (span !== undefined) this.endSpan(span, fact, details)
      }
    }
  }

  /** Pieces of a value come one after the other, and add up to what has its hash. */
  pieceFault({ details, type }) {
    if (type !== "span.payload" || details === undefined) return undefined
    const { payload } = details
    const { chunk, chunks, sha256: hash, text } = isPiece(payload) ? payload : {}
    const begun = chunk === 1 ? { next: 1, text: "", hash } : this.value
    this.value = NO_VALUE
    if (chunk === undefined || chunk !== begun.next || hash !== begun.hash) {
      return fault("content_mismatch", "the next piece of a value", "another")
    }
    const whole = begun.text + text
    if (chunk < chunks) {
      this.value = { next: chunk + 1, text: whole, hash }
      return undefined
    }
    const own = this.sha256(whole)
    if (own !== hash) return fault("content_mismatch", `a value of SHA-256 ${hash}`, own)
    this.values.push(`sha256:${hash}`)
    return undefined
  }

  endSpan({ core, ...span }, fact, { error, metadata }) {
    if (span.digest !== undefined) return
    const long = { ...span.long, metadata: { ...span.long.metadata, ...metadata }, error }
    this.spans.set(fact.span_id, {
      core: {
        ...core,
        status: fact.status,
        ended_at: fact.ended_at,
        erased_at: core.erased_at ?? fact.erased_at
      },
      said: span.said,
      digest: this.sha256(canonical(defined(long)))
    })
  }

  /** What executions.ndjson has to say; undefined if no fact started it. */
  shown() {
    const { ended, started } = this
    if (started === undefined) return undefined
    return defined({
      id: started.execution_id,
      agent_id: started.agent_id,
      agent_name: started.details?.agent_name ?? started.agent_id,
      status: ended?.status ?? "RUNNING",
      root_span_id: started.root_span_id,
      trigger: started.details?.trigger,
      started_at: started.started_at,
      ended_at: ended?.ended_at,
      metadata: { ...started.details?.metadata, ...ended?.details?.metadata },
      created_at: this.createdAt,
      erased_at: this.erasedAt
    })
  }

  /** What spans.ndjson has to say of a span: its short members, and a SHA-256 of the long ones. */
  shownSpan(id) {
    const span = this.spans.get(id)
    if (span === undefined) return this.shownRoot(id)
    const { core, digest, long, said } = span
    const repairs = [...(core.repairs ?? []), ...AMENDMENTS.filter(({ code }) => said.has(code))]
    const { ended_at: end, status = "RUNNING" } = this.ended ?? {}
    const implied =
      core.status !== undefined
        ? {}
        : {
            status,
            ended_at: end === undefined ? undefined : later(end, core.started_at)
          }
    const root_id = this.started?.root_span_id
    const parent_span_id = core.parent_span_id ?? (id === root_id ? undefined : root_id)
    return {
      core: defined({
        ...core,
        parent_span_id,
        repairs: repairs.length === 0 ? undefined : repairs,
        ...implied
      }),
      digest: digest ?? this.sha256(canonical(defined(long)))
    }
  }

  /** The root of spans whose real root has not arrived: no fact of its own says it. */
  hasRoot() {
    return this.started?.provisional === true && !this.spans.has(this.started.root_span_id)
  }

  shownRoot(id) {
    if (!this.hasRoot() || this.started.root_span_id !== id) return undefined
    const { agent_name: name, ended_at, started_at, status } = this.shown()
    return {
      core: defined({
        id,
        execution_id: this.started.execution_id,
        caused_by_span_ids: [],
        span_type: "AGENT",
        status,
        started_at,
        ended_at,
        synthetic: true
      }),
      digest: this.sha256(canonical({ metadata: {}, name }))
    }
  }

  spanCount() {
    return this.spans.size + (this.hasRoot() ? 1 : 0)
  }
}

const defined = (value) =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined))

const later = (left, right) => (left > right ? left : right)

// The Merkle tree of RFC 9162

/** The tree that grows leaf by leaf: complete subtrees from left to right, largest first. */
class Tree {
  constructor(hash) {
    this.hash = hash
    this.size = 0
    this.peaks = []
  }

  /** A complete subtree of 2^level leaves, at the right edge. */
  push(level, node) {
    this.size += 2 ** level
    while (this.peaks.length > 0 && this.peaks[this.peaks.length - 1].level === level) {
      node = this.hash(concat([1], this.peaks.pop().node, node))
      level += 1
    }
    this.peaks.push({ level, node })
  }

  leaf(eventHash) {
    this.push(0, this.hash(concat([0], bytesOfHex(eventHash))))
  }

  root() {
    if (this.peaks.length === 0) return hexOf(this.hash(new Uint8Array()))
    return hexOf(
      this.peaks
        .map(({ node }) => node)
        .reduceRight((right, left) => this.hash(concat([1], left, right)))
    )
  }

  copy() {
    const copy = new Tree(this.hash)
    copy.size = this.size
    copy.peaks = [...this.peaks]
    return copy
  }
}

/** Levels of the complete subtrees that the leaves from `start` to `end` consist of. */
const subtreeLevels = (start, end) => {
  const levels = []
  for (let at = start; at < end; at += 2 ** levels[levels.length - 1]) {
    let level = 0
    while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= end) level += 1
    levels.push(level)
  }
  return levels
}

/** RFC 9162, section 2.1.3.2. */
const isIncluded = (hash, eventHash, sequence, size, root, proof) => {
  let node = sequence - 1
  let last = size - 1
  if (node > last) return false
  let result = hash(concat([0], bytesOfHex(eventHash)))
  for (const sibling of proof) {
    if (last === 0) return false
    if (node % 2 === 1 || node === last) {
      result = hash(concat([1], sibling, result))
      while (node % 2 === 0 && node !== 0) {
        node = Math.floor(node / 2)
        last = Math.floor(last / 2)
      }
    } else {
      result = hash(concat([1], result, sibling))
    }
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 && hexOf(result) === root
}

// Signed notes (C2SP) and keys

const VKEY = /^([^\u0000-\u0020+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/u

const keyIdOf = (name, raw, sha256) =>
  sha256(concat(utf8.encode(`${name}\n`), [1], raw)).slice(0, 8)

/** `{name, id, raw, vkey}` of a C2SP verification key; undefined if it is none. */
const keyOfVkey = (text, sha256) => {
  const [, name, id, base64] = VKEY.exec(text) ?? []
  const typed = base64 === undefined ? undefined : bytesOfBase64(base64)
  if (typed === undefined || typed.length !== 33 || typed[0] !== 1) return undefined
  const raw = typed.slice(1)
  return keyIdOf(name, raw, sha256) === id ? { name, id, raw, vkey: text } : undefined
}

const SPKI_PREFIX = "302a300506032b6570032100"

/** The key as a service of this name has it. */
const namedKey = (key, service, sha256) => {
  if (key.name !== undefined) return key
  // No note is signed by a name that C2SP does not allow.
  const name = /^[^\u0000-\u0020+\ud800-\udfff]+$/u.test(service) ? service : "?"
  const id = keyIdOf(name, key.raw, sha256)
  const typed = btoa(String.fromCharCode(1, ...key.raw))
  return { ...key, name, id, vkey: `${name}+${id}+${typed}` }
}

/** `x` of a JWK for Ed25519 as hex; undefined if it is none. */
const hexOfJwk = (x) => {
  if (typeof x !== "string" || !/^[A-Za-z0-9_-]{43}$/.test(x)) return undefined
  const bytes = bytesOfBase64(`${x.replaceAll("-", "+").replaceAll("_", "/")}=`)
  return bytes === undefined ? undefined : hexOf(bytes)
}

/**
 * The keys in a text: those of bareKeysOfText, each with what alk-keys.json says of it:
 * `endorsement` the statement of the key before it, `retiredAt` when it was replaced. An unendorsed
 * one counts for nothing.
 */
const keysOfText = (text, sha256) => {
  const keys = bareKeysOfText(text, sha256)
  const document = /^[ \t\r\n]*\{/.test(text) && keys.length > 0 ? jsonOf(text) : undefined
  if (!isObject(document) || !Array.isArray(document.keys)) return keys
  const said = new Map()
  for (const jwk of document.keys) {
    const hex = isObject(jwk) ? hexOfJwk(jwk.x) : undefined
    if (hex !== undefined && !said.has(hex)) said.set(hex, jwk)
  }
  return keys.flatMap((key) => {
    const { endorsement, retired_at: retiredAt, trusted } = said.get(hexOf(key.raw)) ?? {}
    if (trusted === "unendorsed") return []
    return [
      {
        ...key,
        ...(typeof endorsement === "string" ? { endorsement } : {}),
        ...(isTime(retiredAt) ? { retiredAt } : {})
      }
    ]
  })
}

/**
 * The keys in a text, at most KEYS_MAX, each once: C2SP keys, JWKs, a PEM, or 32 bytes in base64.
 * Bare keys have no name.
 */
const bareKeysOfText = (text, sha256) => {
  if (text.length > NOTE_BYTES_MAX) return []
  const named = [...new Set(text.split(/[ \t\r\n",]+/u))]
    .map((word) => keyOfVkey(word, sha256))
    .filter(Boolean)
    .slice(0, KEYS_MAX)
  if (named.length > 0) return named
  const trimmed = text.replace(/^[ \t\r\n]+/, "")
  const raws = []
  if (trimmed.startsWith("{")) {
    for (const [, x] of trimmed.matchAll(/"x"[ \t\r\n]*:[ \t\r\n]*"([A-Za-z0-9_-]{43})"/g)) {
      raws.push(bytesOfBase64(`${x.replaceAll("-", "+").replaceAll("_", "/")}=`))
    }
  } else {
    const body = bytesOfBase64(trimmed.replace(/-----[^-]+-----/g, "").replace(/[ \t\r\n]+/g, ""))
    if (body?.length === 32) raws.push(body)
    if (body?.length === 44 && hexOf(body).startsWith(SPKI_PREFIX)) raws.push(body.slice(12))
  }
  return raws
    .filter(Boolean)
    .slice(0, KEYS_MAX)
    .map((raw) => ({ name: undefined, id: undefined, raw }))
}

/** `{text, signatures}` of a signed note; undefined if it is none. */
const splitNote = (note) => {
  const at = note.lastIndexOf("\n\n")
  if (at < 0 || !note.endsWith("\n") || note.length > NOTE_BYTES_MAX) return undefined
  const text = note.slice(0, at + 1)
  const signatures = []
  for (const line of note.slice(at + 2, -1).split("\n")) {
    const [, name, base64] = /^\u2014 ([^\u0000-\u0020+]+) ([A-Za-z0-9+/=]+)$/u.exec(line) ?? []
    const bytes = base64 === undefined ? undefined : bytesOfBase64(base64)
    if (bytes === undefined || bytes.length <= 4) return undefined
    if (signatures.length === SIGNATURES_MAX) return undefined
    signatures.push({ name, id: hexOf(bytes.slice(0, 4)), bytes: bytes.slice(4) })
  }
  return { text, signatures }
}

/**
 * `{origin, size, root, extensions, text, signatures}`; undefined if it is no signed checkpoint.
 */
const noteOf = (note) => {
  const split = splitNote(note)
  if (split === undefined) return undefined
  const { signatures, text } = split
  const [origin, size, rootText, ...extensions] = text.slice(0, -1).split("\n")
  const root = rootText === undefined ? undefined : bytesOfBase64(rootText)
  const isSize = /^(?:0|[1-9][0-9]{0,15})$/.test(size ?? "")
  if (!origin || !isSize || root?.length !== 32) return undefined
  return Number.isSafeInteger(Number(size))
    ? { origin, size: Number(size), root: hexOf(root), extensions, text, signatures }
    : undefined
}

/** The note in a text: the text itself, or the member of a checkpoint as the API answers it. */
const noteTextOf = (text) => {
  const record = /^[ \t\r\n]*\{/.test(text) ? jsonOf(text) : undefined
  return isObject(record) && areStrings(record, "note") ? record.note : text
}

/**
 * `state` "signed", "unknown_key", "bad_signature", or "unchecked" where there is no Ed25519;
 * `signers` the vkeys whose signatures verify.
 */
const signatureState = async (note, keys, host) => {
  const signers = []
  for (const { bytes, id, name } of note.signatures) {
    const known = keys.filter((key) => key.id === id && key.name === name)
    for (const key of known) {
      const isSigned = await host.verifyEd25519(key.raw, utf8.encode(note.text), bytes)
      if (isSigned === undefined) return { state: "unchecked", signers: [] }
      if (!isSigned) return { state: "bad_signature", signers: [] }
      signers.push(key.vkey)
    }
  }
  return { state: signers.length > 0 ? "signed" : "unknown_key", signers }
}

// The line of signing keys (alk-key-line-v1): which key may sign which size of a tree

const ENDORSEMENT_FORMAT = "alk-key-endorsement-v1"
const NEXT_KEY = "alk-next-key "
const TIME = /^([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\.[0-9]{6}Z$/

const daysOf = (year, month) => {
  if (month !== 2) return [4, 6, 9, 11].includes(month) ? 30 : 31
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
}

/** True if this is a time in the form that the service writes. */
const isTime = (value) => {
  const match = typeof value === "string" ? TIME.exec(value) : null
  if (match === null || value < HISTORY_FROM || value > HISTORY_TO) return false
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number)
  return (
    month >= 1
    && month <= 12
    && day >= 1
    && day <= daysOf(year, month)
    && hour < 24
    && minute < 60
    && second < 60
  )
}

const NOT_IN_NOTES = /[\u0000-\u0009\u000b-\u001f\ud800-\udfff]/u

/** What the statement of a key says of the next one, unchecked; undefined if it is none. */
const statementOf = (note) => {
  if (NOT_IN_NOTES.test(note)) return undefined
  const split = splitNote(note)
  if (split === undefined) return undefined
  const [format, name, id, next, time, ...more] = split.text.slice(0, -1).split("\n")
  return format === ENDORSEMENT_FORMAT && isTime(time) && more.length === 0
    ? { ...split, name, id, next, time }
    : undefined
}

const isTrusted = ({ trusted }) => trusted !== "unendorsed"
const isReplaced = ({ retiredAt }) => retiredAt !== undefined

/**
 * The standing of each key, in the order given, pinned keys that are not listed last: `trusted` is
 * "root", "listed" (pinned), "endorsed" or "unendorsed"; `endorsedBy` the id of the key before it;
 * `next` the key that it endorsed, and `retiredAt` when. A key endorses one successor: the first in
 * this order. Keys may have `root` and `endorsement`.
 */
const keyLine = async ({ believesRoots, keys, pinned }, host) => {
  const standings = new Map()
  for (const key of [...keys, ...pinned]) {
    if (standings.has(key.vkey)) continue
    const isRoot = key.root === true && believesRoots
    const isPinned = pinned.some(({ vkey }) => vkey === key.vkey)
    const trusted = isRoot ? "root" : isPinned ? "listed" : "unendorsed"
    const statement = key.endorsement === undefined ? undefined : statementOf(key.endorsement)
    standings.set(key.vkey, { key, vkey: key.vkey, statement, trusted })
  }
  const line = [...standings.values()]
  const waiting = line.filter(isTrusted)
  for (let own = waiting.shift(); own !== undefined; own = waiting.shift()) {
    const successor = await successorOf(line, own, host)
    if (successor === undefined) continue
    own.next = successor.key
    own.retiredAt = successor.statement.time
    successor.endorsedBy = own.key.id
    if (isTrusted(successor)) continue
    successor.trusted = "endorsed"
    waiting.push(successor)
  }
  return line
}

/** The first key, not endorsed by another one already, whose endorsement this key has signed. */
const successorOf = async (line, { key }, host) => {
  for (const successor of line) {
    const { endorsedBy, statement, vkey } = successor
    if (statement === undefined || vkey === key.vkey || endorsedBy !== undefined) continue
    const isOfBoth =
      statement.name === key.name && statement.id === key.id && statement.next === vkey
    if (!isOfBoth) continue
    const { state } = await signatureState(statement, [key], host)
    if (state === "signed") return successor
  }
  return undefined
}

/** The key that a checkpoint names as the next one; undefined if it hands nothing over. */
const nextKeyOf = ({ extensions }) =>
  extensions.find((extension) => extension.startsWith(NEXT_KEY))?.slice(NEXT_KEY.length)

/** The smallest of the notes, `{note, signers}`, with which a key handed over to the next one. */
const handOverOf = ({ next, vkey }, { handOvers, origin }) => {
  let smallest
  for (const { note, signers } of handOvers) {
    const isOwn = signers.includes(vkey) && note.origin === origin && nextKeyOf(note) === next?.vkey
    if (isOwn && (smallest === undefined || note.size < smallest.size)) smallest = note
  }
  return smallest
}

/** True if the key that signs the tree now is this one, or one before it in the line. */
const isStillSigning = (line, vkey, signer) => {
  const seen = new Set()
  let at = signer
  while (at !== undefined && at !== vkey && !seen.has(at)) {
    seen.add(at)
    at = line.find((one) => one.vkey === at)?.next?.vkey
  }
  return at === vkey
}

/**
 * Why this key may not have signed a tree of this size and root; undefined if it may. `tree`:
 * `{origin, handOvers, signer}`, the vkey that signs it now.
 */
const signatureRefusal = (line, tree, { root, size, vkey }) => {
  const standing = line.find((one) => one.vkey === vkey)
  if (standing === undefined) return "its key is not published"
  const {
    key: { id },
    next,
    retiredAt
  } = standing
  if (!isTrusted(standing)) {
    return `its key ${id} is not endorsed by the key before it and not listed as trusted`
  }
  if (next === undefined) return undefined
  const last = handOverOf(standing, tree)
  if (last === undefined) {
    if (isStillSigning(line, vkey, tree.signer)) return undefined
    return `its key ${id} was replaced by ${next.id} at ${retiredAt} and never signed this tree`
  }
  if (size > last.size) {
    return (
      `its key ${id} was replaced by ${next.id} at ${retiredAt}, when the tree had `
      + `${last.size} leaves, not ${size}`
    )
  }
  return size === last.size && root !== last.root
    ? `its key ${id} handed over another tree of ${size} leaves to ${next.id}`
    : undefined
}

// What was found

class Findings {
  constructor() {
    this.problems = []
    this.total = 0
    this.checked = []
    this.open = []
  }

  problem(file, sequence, reason, expected, actual) {
    this.total += 1
    if (this.problems.length >= PROBLEMS_MAX) return
    this.problems.push({ file, sequence_number: sequence, reason, expected, actual })
  }

  fault(file, sequence, { actual, expected, reason }) {
    this.problem(file, sequence, reason, expected, actual)
  }
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`
const range = (first, last) =>
  first === last ? `sequence ${first}` : `sequences ${first} to ${last}`

// Files

/** The text of a line; undefined for one that is too long or no UTF-8. */
const textOfLine = (bytes) => {
  if (bytes.length > LINE_BYTES_MAX) return undefined
  try {
    return fromUtf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** The lines of a file as texts, undefined for one that is none. */
async function* linesOf(file) {
  // Of a line whose end has not come: joined once, or dropped as soon as it is too long.
  let pieces = []
  let size = 0
  const keep = (piece) => {
    size += piece.length
    if (size > LINE_BYTES_MAX) pieces = []
    else if (piece.length > 0) pieces.push(piece)
  }
  const line = () => {
    const whole = pieces.length === 1 ? pieces[0] : concat(...pieces)
    const text = size > LINE_BYTES_MAX ? undefined : textOfLine(whole)
    pieces = []
    size = 0
    return text
  }
  for await (const chunk of file) {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      keep(chunk.subarray(start, end))
      yield line()
      start = end + 1
    }
    keep(chunk.subarray(start))
  }
  if (size > 0) yield line()
}

const bytesOfFile = async (file) => {
  const chunks = []
  let size = 0
  for await (const chunk of file) {
    size += chunk.length
    if (size > SMALL_FILE_BYTES_MAX) throw new Unreadable("a file is larger than any of a pack is")
    chunks.push(chunk)
  }
  return concat(...chunks)
}

const jsonOf = (text) => {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

/**
 * One chain of a pack: its links, the Merkle tree that grows with them, and the checkpoints that
 * were signed of it.
 */
class PackChain {
  /** `edges`, `links`: names of files; `noun`: what the chain is of. */
  constructor(check, { edges, first, handOverName, links, noteName, noun, origin, scheme }) {
    Object.assign(this, {
      check,
      edges,
      expectedFirst: first,
      handOverName,
      linksFile: links,
      noteName,
      noun,
      origin,
      scheme
    })
    this.found = check.found
    this.notes = []
    /** Notes with which keys have handed the tree over, `{note, signers}`. */
    this.handOvers = []
    /** Size of the largest tree that agrees and that a key of now, or a kept checkpoint, shows. */
    this.shown = 0
    /** Roots by size that the links make, and those of them that a key has signed. */
    this.roots = new Map()
    this.agreed = new Map()
    this.treeHolds = true
    this.links = 0
    /**
     * The sequences that the pack claims to hold, as far as its links and a tree can show it:
     * undefined where times decide it, `ends` SEQUENCE_MAX if nothing bounds its end.
     */
    this.begins = undefined
    this.ends = undefined
    /** Sequences outside of which it may hold none. */
    this.least = 1
    this.most = SEQUENCE_MAX
    /** The events up to here were removed for good before the pack was made. */
    this.removed = 0
    this.onLink = () => {}
  }

  async readTree() {
    const { check } = this
    const tree = jsonOf((await check.text(this.edges)) ?? "")
    const isHashes = (list) => Array.isArray(list) && list.every(isHash)
    this.tree = new Tree(check.host.sha256Bytes)
    this.right = { start: 0, end: 0, hashes: [] }
    if (!isObject(tree)) return this.badTree("JSON")
    const { left, right } = tree
    const isWhole =
      isObject(left)
      && isObject(right)
      && isHashes(left.hashes)
      && isHashes(right.hashes)
      && [left.size, right.start, right.end].every(isSize)
    if (!isWhole) return this.badTree("left and right edges")
    const levels = subtreeLevels(0, left.size)
    const isFitting =
      levels.length === left.hashes.length
      && right.start <= right.end
      && subtreeLevels(right.start, right.end).length === right.hashes.length
    if (!isFitting) return this.badTree("edges of their size")
    levels.forEach((level, at) => this.tree.push(level, bytesOfHex(left.hashes[at])))
    this.right = right
  }

  badTree(expected) {
    this.treeHolds = false
    if (this.check.has(this.edges))
      this.found.problem(this.edges, null, "content_mismatch", expected, "something else")
  }

  async readNotes() {
    for (const name of this.check.source.names.filter((name) => this.noteName.test(name)).sort()) {
      await this.readNote(name, Number(this.noteName.exec(name)[1]))
    }
    for (const name of this.check.source.names
      .filter((name) => this.handOverName.test(name))
      .sort()) {
      await this.readNote(name)
    }
  }

  /** `wanted`: the size that the name of the file says; undefined for a tree handed over. */
  async readNote(name, wanted) {
    const { check, found, noun, origin } = this
    const text = await check.text(name)
    const note = text === undefined ? undefined : noteOf(text)
    const size = wanted ?? note?.size ?? null
    const bad = (expected, actual) =>
      found.problem(name, size, "checkpoint_mismatch", expected, actual)
    if (note === undefined || note.size !== size || note.origin !== origin) {
      const actual =
        note === undefined ? "something else" : `one of ${note.origin} for ${note.size} ${noun}s`
      const of = wanted === undefined ? "" : ` for ${wanted} ${noun}s`
      return bad(`a checkpoint of ${origin}${of}`, actual)
    }
    const isHandOver = nextKeyOf(note) !== undefined
    if (wanted === undefined && !isHandOver) {
      return bad("a checkpoint that names the next key", "one that names none")
    }
    await this.admit({ file: name, ...note, isHandOver: wanted === undefined }, bad)
  }

  /** Adds a note of the pack if its signature verifies, and says whether it did. */
  async admit(note, bad) {
    const { check } = this
    const { signers, state } = await signatureState(note, check.keys, check.host)
    if (state === "bad_signature") bad("a signature that verifies", "one that does not")
    else if (state === "unknown_key" && check.pinned.length === 0) {
      bad(`a signature by a key of ${KEYS}`, "another key's")
    } else {
      this.add({ ...note, state, signers })
      return true
    }
    return false
  }

  /** The point up to which the beginning of the claimed sequences was removed, if it was. */
  async readRemoved(pruned) {
    const { begins, found, noun, origin } = this
    const size = isObject(pruned) ? pruned.up_to_sequence : undefined
    if (begins === undefined || !isSequence(size) || size < begins) return
    const isText = areStrings(pruned, "checkpoint") && !NOT_IN_NOTES.test(pruned.checkpoint)
    const note = isText ? noteOf(pruned.checkpoint) : undefined
    const bad = (expected, actual) =>
      found.problem(VERIFICATION, size, "checkpoint_mismatch", expected, actual)
    if (note?.origin !== origin || note.size !== size || note.root !== pruned.root_hash) {
      bad(`a checkpoint of ${origin} for ${size} ${noun}s`, "something else")
    } else if (await this.admit({ file: VERIFICATION, ...note, isHandOver: false }, bad)) {
      this.removed = size
      this.begins = size + 1
    }
  }

  add(note) {
    this.notes.push(note)
    if (nextKeyOf(note) !== undefined) this.handOvers.push({ note, signers: note.signers })
  }

  keep(label, note, state, signers) {
    this.add({ file: label, ...note, state, signers, isKept: true })
  }

  /** Leaves out what its key may not have signed. */
  judgeNotes() {
    const {
      check: { line, treeSigner: signer },
      found,
      handOvers,
      origin
    } = this
    this.notes = this.notes.filter(({ file, root, signers, size, state }) => {
      if (state !== "signed") return true
      const refusals = signers.map((vkey) =>
        signatureRefusal(line, { origin, handOvers, signer }, { vkey, size, root })
      )
      if (refusals.includes(undefined)) return true
      const expected = "a signature by a key that may sign it"
      found.problem(file, size, "checkpoint_mismatch", expected, refusals[0])
      return false
    })
  }

  /** Leaves of the tree that this key handed over to the next one; null if it has not. */
  handedOver(standing) {
    return handOverOf(standing, this)?.size ?? null
  }

  /** The links one by one, each held against the one before it. */
  async *checkedLinks() {
    const { check, found, linksFile } = this
    this.notes.sort((left, right) => left.size - right.size)
    this.wanted = new Set(this.notes.map(({ size }) => size))
    const first = this.expectedFirst
    let expected = isSequence(first) ? first : this.tree.size + 1
    if (expected !== this.tree.size + 1 && this.treeHolds) {
      this.badTree(`the tree of ${expected - 1} ${this.noun}s on the left`)
    }
    let previous
    for await (const line of check.lines(linksFile)) {
      this.links += 1
      const link = line === undefined ? undefined : jsonOf(line)
      if (!isLinkText(link, line)) {
        const wanted = `the link of ${this.noun === "event" ? "an event" : "a fact"}`
        found.problem(linksFile, expected, "content_mismatch", wanted, "something else")
        this.treeHolds = false
        previous = undefined
        expected += 1
        continue
      }
      const sequence = link.sequence_number
      if (sequence > expected) {
        found.problem(linksFile, expected, "sequence_gap", range(expected, sequence - 1), "none")
        this.treeHolds = false
      } else if (sequence < expected) {
        const reason = sequence === expected - 1 ? "duplicate_sequence" : "out_of_order"
        found.problem(linksFile, sequence, reason, `sequence ${expected}`, `sequence ${sequence}`)
        this.treeHolds = false
        continue
      }
      const before =
        sequence === 1
          ? GENESIS_HASH
          : previous?.sequence_number === sequence - 1
            ? previous.hash
            : undefined
      const hash = check.sha256(linkText(this.scheme, check.tenant, link, link.content_hash))
      if (before !== undefined && link.prev_hash !== before) {
        found.problem(linksFile, sequence, "prev_hash_mismatch", before, link.prev_hash)
      } else if (link.hash !== hash) {
        found.problem(linksFile, sequence, "hash_mismatch", hash, link.hash)
      }
      this.grow(link)
      previous = link
      expected = sequence + 1
      yield link
    }
  }

  /** The links against the sequences that the bounds name, where they were not cut off. */
  checkSpan() {
    if (this.first === undefined) return
    const { begins, expectedFirst, found, linksFile } = this
    const [first, last] = [this.first.sequence_number, this.last.sequence_number]
    const start = isSequence(expectedFirst) ? expectedFirst : first
    if (begins !== undefined && start > begins) {
      found.problem(linksFile, begins, "sequence_gap", range(begins, start - 1), "none")
    }
    const outside = [...(first < this.least ? [first] : []), ...(last > this.most ? [last] : [])]
    for (const sequence of outside) {
      const expected = "a sequence within the bounds"
      found.problem(linksFile, sequence, "content_mismatch", expected, `sequence ${sequence}`)
    }
  }

  /** First and last of what the pack claims to hold of a tree and ends before, or undefined. */
  missingTo(size) {
    const start = this.last === undefined ? this.begins : this.last.sequence_number + 1
    const end = Math.min(this.ends, size)
    return start === undefined || this.ends === undefined || end < start ? undefined : [start, end]
  }

  grow(link) {
    this.last = link
    this.first ??= link
    this.onLink(link)
    if (!this.treeHolds) return
    // The tree after what is on the left, before the first link, may be asked for too.
    if (this.wanted.has(this.tree.size)) this.roots.set(this.tree.size, this.tree.root())
    this.tree.leaf(link.hash)
    if (this.wanted.has(this.tree.size)) this.roots.set(this.tree.size, this.tree.root())
  }

  /** The roots that were signed against the tree of the links. */
  checkNotes() {
    const { found, notes, noun } = this
    const last = this.last?.sequence_number ?? 0
    let matched = this.first === undefined ? 0 : this.first.sequence_number - 1
    let covered = 0
    const agreeing = []
    for (const note of notes) {
      const { file, isKept, root, size } = note
      const own = this.rootAt(size, last)
      const missing = this.treeHolds ? this.missingTo(size) : undefined
      if (missing !== undefined) {
        const expected = `${range(...missing)}, as the checkpoint says`
        found.problem(file, missing[0], "tail_missing", expected, "none")
      } else if (isKept === true && this.treeHolds && last > 0 && last < size) {
        found.open.push(
          `The checkpoint ${file}: it covers ${counted(size, noun)}, the pack ends at ${last}.`
        )
      }
      if (own === undefined) {
        if (missing === undefined) this.unreached(note, last)
      } else if (own !== root) {
        const places = `${matched + 1} to ${Math.min(size, last)}`
        found.problem(
          file,
          size,
          "checkpoint_mismatch",
          `root ${root} over ${size} ${noun}s`,
          `root ${own}: not all of the ${noun}s ${places} are those that were signed`
        )
      } else {
        matched = Math.max(matched, Math.min(size, last))
        if (note.state === "signed" || note.state === "unchecked") this.agreed.set(size, own)
        const isSigned = note.state === "signed" || isKept
        if (isSigned) covered = Math.max(covered, size)
        if (this.check.isShownBy(note)) this.shown = Math.max(this.shown, size)
        agreeing.push(size)
        if (note.state === "unknown_key") {
          found.open.push(`The signature of ${file}: by a key that was not given.`)
        }
      }
    }
    if (agreeing.length > 0) {
      found.checked.push(
        `The Merkle root over ${this.linksFile} equals `
          + `${counted(agreeing.length, "signed checkpoint")} (`
          + `${agreeing
            .slice(-5)
            .map((size) => counted(size, noun))
            .join(", ")}).`
      )
    }
    if (last > covered && this.treeHolds) {
      const from = Math.max(covered + 1, this.first.sequence_number)
      found.open.push(
        `Nothing signed covers ${range(from, last)} of ${this.linksFile}: it could have been `
          + "rewritten."
      )
    }
    if (!this.treeHolds) {
      found.open.push(
        `The checkpoints of ${this.linksFile}: its links do not make a tree that could be compared.`
      )
    }
  }

  rootAt(size, last) {
    if (!this.treeHolds) return undefined
    if (this.roots.has(size)) return this.roots.get(size)
    const { end, hashes, start } = this.right
    if (size !== end || start !== last || this.tree.size !== last || size <= last) return undefined
    const tree = this.tree.copy()
    subtreeLevels(start, end).forEach((level, at) => tree.push(level, bytesOfHex(hashes[at])))
    return tree.root()
  }

  unreached({ file, isHandOver, isKept, size }, last) {
    const { found, noun } = this
    const first = this.first?.sequence_number
    // A tree that was handed over outside of the links only bounds what its key may sign.
    if (!this.treeHolds || isHandOver) return
    if (first === undefined || size < first - 1) {
      found.open.push(
        `The checkpoint ${file}: it covers ${counted(size, noun)}, none of them in this pack.`
      )
      return
    }
    if (isKept) return
    const expected = `${range(last + 1, size)}, as the checkpoint says`
    found.problem(file, last + 1, "tail_missing", expected, "none")
  }
}

const cutNotice = (text) => {
  const characters = [...text.slice(0, 2 * NOTICE_LENGTH_MAX + 2)]
  if (characters.length <= NOTICE_LENGTH_MAX) return text
  return `${characters.slice(0, NOTICE_LENGTH_MAX).join("")}…`
}

/** What the service says of a chain that is no break of it, as sentences of a report. */
const noticesOf = (report, records) => {
  const said = (isObject(report) ? report.notices : undefined) ?? []
  const notices = Array.isArray(said) ? said : [said]
  const more = notices.length - NOTICES_MAX
  return [
    ...notices
      .slice(0, NOTICES_MAX)
      .map((notice) => `${VERIFICATION} says of the ${records}: ${cutNotice(shown(notice))}.`),
    ...(more > 0 ? [`${VERIFICATION} says ${more} more of the ${records}.`] : [])
  ]
}

/** One check of one pack, from its files to the verdict. */
class PackCheck {
  constructor(source, host, options) {
    this.source = source
    this.host = host
    this.sha256 = host.sha256
    this.pinned = options.keys ?? []
    this.kept = options.checkpoints ?? []
    this.progress = options.progress ?? (() => {})
    this.found = new Findings()
    this.hashes = new Map()
    this.erasures = new Map()
    this.outside = new Map()
    /** Size of the largest tree that proves an erasure. */
    this.proving = 0
    /** vkeys that signed the manifest, and those that signed a checkpoint from elsewhere. */
    this.manifestSigners = []
    this.keptSigners = new Set()
    /** The line of keys, and the line that starts with what is known from elsewhere. */
    this.line = []
    this.originLine = []
    this.notices = []
    this.erasedSeen = 0
    this.events = 0
    this.facts = 0
    this.executions = new Map()
    /** Values that metadata of events refers to. */
    this.references = new Set()
  }

  has(name) {
    return this.source.names.includes(name)
  }

  /** A file as a stream whose hash is known when it has been read. */
  async *reading(name) {
    const hasher = this.host.hasher()
    for await (const chunk of this.source.open(name)) {
      hasher.update(chunk)
      this.progress(name, chunk.length)
      yield chunk
    }
    this.hashes.set(name, hasher.hex())
  }

  async text(name) {
    if (!this.has(name)) return undefined
    const bytes = await bytesOfFile(this.reading(name))
    try {
      return fromUtf8.decode(bytes)
    } catch {
      return undefined
    }
  }

  async run() {
    const { found } = this
    const missing = REQUIRED.filter((name) => !this.has(name))
    if (missing.length >= REQUIRED.length - 1) throw new Unreadable("this is no evidence pack")
    for (const name of missing)
      found.problem(name, null, "file_missing", `the file ${name}`, "none")
    const isReadable = await this.manifest()
    if (isReadable) {
      const { log, traces } = this
      await log.readTree()
      await log.readNotes()
      await traces.readTree()
      await traces.readNotes()
      /** What verification.json says. */
      this.said = jsonOf((await this.text(VERIFICATION)) ?? "")
      if (isObject(this.said)) await log.readRemoved(this.said.pruned)
      await this.readKept()
      await this.readOrigin()
      log.judgeNotes()
      traces.judgeNotes()
      await this.readErasures()
      await this.joinEvents()
      log.checkSpan()
      this.report()
      log.checkNotes()
      await this.readProofs()
      this.checkErasuresOutside()
      await this.joinFacts()
      traces.checkSpan()
      await this.checkExecutions()
      await this.checkSpans()
      this.checkTraceCounts()
      traces.checkNotes()
    }
    await this.files()
    if (isReadable) this.limits()
    return this.result()
  }

  /** Manifest and signature; false if nothing can be held against it. */
  async manifest() {
    const { found } = this
    const text = await this.text(MANIFEST)
    if (text === undefined) {
      if (this.has(MANIFEST))
        found.problem(MANIFEST, null, "content_mismatch", "JSON", "bytes that are none")
      return false
    }
    const manifest = jsonOf(text)
    if (!isObject(manifest)) {
      found.problem(MANIFEST, null, "content_mismatch", "JSON", "bytes that are none")
      return false
    }
    if (manifest.format !== FORMAT) {
      if (areStrings(manifest, "format") && manifest.format.startsWith("alk-evidence-pack-v")) {
        throw new Unreadable(`its format is ${manifest.format}; this program reads ${FORMAT}`)
      }
      found.problem(
        MANIFEST,
        null,
        "content_mismatch",
        `format ${FORMAT}`,
        `format ${shown(manifest.format)}`
      )
      return false
    }
    const { bounds, counts, files } = manifest
    const isWhole =
      isObject(bounds)
      && isObject(counts)
      && Array.isArray(files)
      && files.length <= FILES_MAX
      && files.every((file) => isObject(file) && areStrings(file, "name", "sha256"))
      && files.every(({ name }) => isSafeName(name))
      && areStrings(manifest, "tenant_id", "service", "generated_at")
      && manifest.scheme === SCHEME
      && areStrings(bounds, "from", "to")
      && [bounds.from_sequence, bounds.to_sequence, manifest.to_trace_sequence].every(
        (value) => (value ?? null) === null || isSize(value)
      )
    if (!isWhole) {
      found.problem(MANIFEST, null, "content_mismatch", `a manifest of ${FORMAT}`, "something else")
      return false
    }
    this.described = manifest
    this.tenant = manifest.tenant_id
    this.filtered = (manifest.filter ?? null) !== null
    this.complete = !this.filtered && bounds.from === HISTORY_FROM && bounds.to === HISTORY_TO
    this.isWhole = bounds.from === HISTORY_FROM && bounds.to === HISTORY_TO
    this.origin = `${manifest.service}/${this.tenant}`
    this.log = new PackChain(this, {
      edges: TREE,
      links: LINKS,
      noteName: NOTE_NAME,
      handOverName: HAND_OVER_NAME,
      noun: "event",
      origin: this.origin,
      scheme: SCHEME,
      first: manifest.first_sequence_number
    })
    this.log.onLink = (link) => this.placeErasure(link)
    this.traces = new PackChain(this, {
      edges: TRACE_TREE,
      links: TRACE_LINKS,
      noteName: TRACE_NOTE_NAME,
      handOverName: TRACE_HAND_OVER_NAME,
      noun: "fact",
      origin: `${this.origin}/traces`,
      scheme: TRACE_SCHEME,
      first: manifest.first_trace_sequence_number
    })
    this.readClaims()
    await this.readKeys()
    await this.signature(utf8.encode(text).length)
    return true
  }

  /** The sequences that the bounds of the manifest name, of both chains. */
  readClaims() {
    const { described, filtered, isWhole, log, traces } = this
    const { from_sequence: first, to, to_sequence: last } = described.bounds
    log.least = Math.max(1, first ?? 0)
    log.most = last ?? SEQUENCE_MAX
    if (isWhole) log.begins = log.least
    if (to === HISTORY_TO) log.ends = log.most
    // A pack of a selection of events may leave the facts out.
    const isPart = filtered || (first ?? last ?? null) !== null
    if (isWhole && ((described.trace_head ?? null) !== null || !isPart)) {
      traces.begins = 1
      traces.ends = described.to_trace_sequence ?? SEQUENCE_MAX
      traces.most = traces.ends
    }
  }

  /**
   * The keys of the pack and those given, and the line that they make: from the keys given, or else
   * from what the pack itself says.
   */
  async readKeys() {
    const { host, sha256 } = this
    const texts = bareKeysOfText((await this.text(KEYS)) ?? "", sha256)
    this.ownKeys = texts.filter(({ name }) => name !== undefined)
    for (const [at, key] of this.ownKeys.entries()) {
      const endorsement = await this.text(endorsementName(at + 1))
      if (endorsement !== undefined) key.endorsement = endorsement
      key.root = !this.has(endorsementName(at + 1))
    }
    const given = new Map(this.ownKeys.map((key) => [key.vkey, key]))
    const named = this.pinned.map((key) => namedKey(key, this.described.service, sha256))
    for (const key of named) given.set(key.vkey, { ...given.get(key.vkey), ...key })
    this.givenKeys = [...new Set(named.map(({ vkey }) => vkey))].map((vkey) => given.get(vkey))
    this.line = await keyLine(
      {
        keys: [...this.givenKeys, ...this.ownKeys.map((key) => this.unlessReplaced(key))],
        pinned: this.givenKeys,
        believesRoots: this.pinned.length === 0
      },
      host
    )
    // The caller may know of a replacement without the statement that made it.
    for (const { retiredAt, vkey } of this.givenKeys) {
      const standing = this.line.find((one) => one.vkey === vkey)
      standing.retiredAt ??= retiredAt
    }
    this.keys = this.line.filter(isTrusted).map(({ key }) => key)
  }

  /** A key of the pack, without the statement of a key that the caller knows to be replaced. */
  unlessReplaced(key) {
    const statement = key.endorsement === undefined ? undefined : statementOf(key.endorsement)
    const isOld = this.givenKeys.some(
      ({ id, name, retiredAt }) =>
        retiredAt !== undefined && id === statement?.id && name === statement.name
    )
    return isOld ? { ...key, endorsement: undefined } : key
  }

  /** The line that starts with the keys given, or with those that signed a kept checkpoint. */
  async readOrigin() {
    const { host, keptSigners, line, ownKeys, pinned } = this
    const kept = line.filter(({ vkey }) => keptSigners.has(vkey)).map(({ key }) => key)
    this.originLine =
      pinned.length > 0
        ? line
        : await keyLine({ keys: ownKeys, pinned: kept, believesRoots: false }, host)
  }

  /** The standing of a key in the line from elsewhere, if it counts there. */
  standingOf(vkey) {
    return this.originLine.find((one) => one.vkey === vkey && isTrusted(one))
  }

  /** True if a note comes from elsewhere, or is signed by a key of now that is known from there. */
  isShownBy({ isKept, signers, state }) {
    if (state !== "signed") return false
    return (
      isKept === true
      || signers.some((vkey) => {
        const standing = this.standingOf(vkey)
        return standing !== undefined && !isReplaced(standing)
      })
    )
  }

  async signature(manifestBytes) {
    const { found } = this
    const text = await this.text(SIGNATURE)
    if (!this.has(SIGNATURE)) return
    const note = text === undefined ? undefined : noteOf(text)
    const bad = (expected, actual) =>
      found.problem(SIGNATURE, null, "signature_invalid", expected, actual)
    if (note === undefined) return bad("a signed note", "something else")
    const { signers, state } = await signatureState(note, this.keys, this.host)
    const who =
      this.pinned.length > 0
        ? "the public key that was given, or one that it endorsed"
        : `a key of ${KEYS}`
    if (state === "unknown_key") return bad(`a signature by ${who}`, "a signature by another key")
    if (state === "bad_signature") return bad(`a signature by ${who}`, "one that does not verify")
    const digest = this.hashes.get(MANIFEST)
    if (
      note.origin !== `${this.origin}/evidence-pack-v2`
      || note.size !== manifestBytes
      || note.root !== digest
    ) {
      return bad(`the SHA-256 of ${MANIFEST}, ${digest}`, `${note.origin} ${note.root}`)
    }
    if (state === "unchecked") {
      found.open.push("The signatures: Ed25519 is not available here.")
      return
    }
    this.manifestSigners = signers
    const { tree_signer: treeSigner } = this.described
    this.treeSigner = typeof treeSigner === "string" ? treeSigner : signers[0]
    const [signer] = note.signatures
    found.checked.push(`${MANIFEST} is signed by ${signer.name}+${signer.id}.`)
  }

  /** Every file against manifest and sums; reads what nothing has read yet. */
  async files() {
    const { found } = this
    for (const name of this.source.names) {
      if (this.hashes.has(name) || !this.isListed(name)) continue
      for await (const _ of this.reading(name));
    }
    const sums = new Map()
    const text = this.has(SUMS) ? await this.text(SUMS) : ""
    for (const line of (text ?? "").split("\n")) {
      const [, hash, name] = /^([0-9a-f]{64}) {2}([^\n]+)$/u.exec(line) ?? []
      if (name !== undefined && isSafeName(name)) sums.set(name, hash)
      else if (line !== "")
        found.problem(SUMS, null, "content_mismatch", "a SHA-256 and a name", "another line")
    }
    if (text === undefined)
      found.problem(SUMS, null, "content_mismatch", "UTF-8 text", "other bytes")
    const listed = new Map((this.described?.files ?? []).map(({ name, sha256 }) => [name, sha256]))
    const names = new Set([...listed.keys(), ...sums.keys(), ...this.source.names])
    let agreeing = 0
    for (const name of [...names].sort()) {
      if (name === SUMS) continue
      const own = this.hashes.get(name)
      const isOwn = name === MANIFEST || name === SIGNATURE
      const wanted = isOwn || this.described === undefined ? sums.get(name) : listed.get(name)
      if (!this.has(name)) {
        if (!REQUIRED.includes(name))
          found.problem(name, null, "file_missing", `the file ${name}`, "none")
      } else if (wanted === undefined) {
        this.unexpected(name)
      } else if (own !== wanted) {
        found.problem(name, null, "file_mismatch", `SHA-256 ${wanted}`, `SHA-256 ${own}`)
      } else if (this.has(SUMS) && sums.get(name) !== own) {
        found.problem(SUMS, null, "file_mismatch", `${own} for ${name}`, shown(sums.get(name)))
      } else {
        agreeing += 1
      }
    }
    found.checked.push(
      `${counted(agreeing, "file")} ${agreeing === 1 ? "has" : "have"} the SHA-256 that `
        + `${MANIFEST} and ${SUMS} say.`
    )
  }

  isListed(name) {
    if (name === SUMS) return false
    return (
      this.source.kind === "zip"
      || name === MANIFEST
      || name === SIGNATURE
      || this.described === undefined
      || this.described.files.some((file) => file.name === name)
    )
  }

  unexpected(name) {
    if (this.source.kind === "folder" && name !== MANIFEST && name !== SIGNATURE) {
      this.strangers = [...(this.strangers ?? []), name]
    } else {
      this.found.problem(
        name,
        null,
        "file_unexpected",
        `no file that ${MANIFEST} does not name`,
        name
      )
    }
  }

  /** The checkpoints that were given, each to the chain that it is of. */
  async readKept() {
    for (const { label, text } of this.kept) {
      const note = noteOf(noteTextOf(text))
      if (note === undefined) throw new Unreadable(`${label} is no signed checkpoint`)
      const chain = [this.log, this.traces].find(({ origin }) => origin === note.origin)
      if (chain === undefined) {
        throw new Unreadable(
          `${label} is a checkpoint of ${note.origin}, the pack is of ${this.origin}`
        )
      }
      const { signers, state } = await signatureState(note, this.keys, this.host)
      if (state === "bad_signature")
        throw new Unreadable(`${label} has a signature that does not verify`)
      // The pack's own key has signed what came from elsewhere: it is the service's key.
      for (const signer of signers) this.keptSigners.add(signer)
      chain.keep(label, note, state, signers)
    }
  }

  placeErasure(link) {
    const erasure = this.outside.get(link.sequence_number)
    if (erasure === undefined) return
    this.outside.delete(link.sequence_number)
    if (erasure.hash !== link.hash) {
      this.found.problem(
        ERASURES,
        erasure.target,
        "content_mismatch",
        `an erasure in the chain, ${link.hash} at ${link.sequence_number}`,
        erasure.hash
      )
    }
  }

  /** What was erased, by the sequence that was. */
  async readErasures() {
    const { found } = this
    let previous = 0
    for await (const line of this.lines(ERASURES)) {
      const event = line === undefined ? undefined : eventOf(line)
      if (event === undefined) {
        found.problem(
          ERASURES,
          null,
          "content_mismatch",
          "the JSON of an event",
          "bytes that are none"
        )
        continue
      }
      const sequence = event.sequence_number
      const wrongness = faultOf(line, event, this.tenant, undefined, this.sha256)
      const { content_hash: contentHash, sequence_number: target } = event.metadata ?? {}
      if (wrongness !== undefined) found.fault(ERASURES, sequence, wrongness)
      else if (
        event.action !== ERASURE_ACTION
        || !isSequence(target)
        || target >= sequence
        || typeof contentHash !== "string"
      ) {
        found.problem(
          ERASURES,
          sequence,
          "content_mismatch",
          "an erasure of an earlier event",
          event.action
        )
      } else if (sequence <= previous) {
        found.problem(
          ERASURES,
          sequence,
          "out_of_order",
          `a sequence above ${previous}`,
          `${sequence}`
        )
      } else {
        previous = sequence
        // Asked for twice, it was done the first time: either may be named.
        const before = this.erasures.get(target)
        if (before === undefined)
          this.erasures.set(target, { contentHash, times: [event.created_at] })
        else before.times.push(event.created_at)
        this.outside.set(sequence, { target, hash: event.hash })
      }
    }
  }

  /** Lines of a file; none if it is missing. */
  async *lines(name) {
    if (this.has(name)) yield* linesOf(this.reading(name))
  }

  /** Events and links side by side, both ascending. */
  async joinEvents() {
    const { found } = this
    const links = this.log.checkedLinks()
    const next = async () => (await links.next()).value
    let link = await next()
    let previous = 0
    for await (const line of this.lines(EVENTS)) {
      this.events += 1
      const event = line === undefined ? undefined : eventOf(line)
      if (event === undefined) {
        const said = saidSequence(line ?? "")
        const place =
          this.complete && link !== undefined
            ? link.sequence_number
            : said > previous
              ? said
              : previous + 1
        found.problem(
          EVENTS,
          place,
          "content_mismatch",
          "the JSON of an event",
          "bytes that are none"
        )
        previous = place
        while (link !== undefined && link.sequence_number <= place) link = await next()
        continue
      }
      const sequence = event.sequence_number
      const isRenumbered =
        this.complete
        && link !== undefined
        && sequence !== link.sequence_number
        && (event.hash === link.hash || event.prev_hash === link.prev_hash)
      if (isRenumbered) {
        found.fault(EVENTS, link.sequence_number, wrong("sequence", link.sequence_number, sequence))
        previous = link.sequence_number
        link = await next()
        continue
      }
      if (sequence <= previous) {
        const reason = sequence === previous ? "duplicate_sequence" : "out_of_order"
        found.problem(
          EVENTS,
          sequence,
          reason,
          `a sequence above ${previous}`,
          `sequence ${sequence}`
        )
        continue
      }
      if (this.complete && link !== undefined && sequence > link.sequence_number) {
        found.problem(
          EVENTS,
          link.sequence_number,
          "sequence_gap",
          range(link.sequence_number, sequence - 1),
          "none"
        )
      }
      while (link !== undefined && link.sequence_number < sequence) link = await next()
      previous = sequence
      const isLinked = link !== undefined && link.sequence_number === sequence
      this.event(line, event, isLinked ? link : undefined)
      if (isLinked) link = await next()
    }
    if (this.complete && link !== undefined) {
      const from = link.sequence_number
      while (link !== undefined) link = await next()
      const end = this.log.last.sequence_number
      found.problem(EVENTS, from, "tail_missing", range(from, end), "none")
    }
    while (link !== undefined) link = await next()
  }

  event(line, event, link) {
    const { found } = this
    const sequence = event.sequence_number
    const { bounds } = this.described
    if (event.erased_at !== undefined) this.erasedSeen += 1
    for (const reference of referencesOf(event.metadata)) this.references.add(reference)
    if (link === undefined) {
      found.problem(EVENTS, sequence, "hash_mismatch", `a link in ${LINKS}`, "none")
      return
    }
    const erasure = this.erasures.get(sequence)
    if (event.prev_hash !== link.prev_hash) {
      found.problem(EVENTS, sequence, "prev_hash_mismatch", link.prev_hash, event.prev_hash)
      return
    }
    const wrongness = faultOf(line, event, this.tenant, erasure, this.sha256)
    if (wrongness !== undefined) {
      found.fault(EVENTS, sequence, wrongness)
    } else if (
      event.hash !== link.hash
      || event.content_hash !== link.content_hash
      || event.created_at !== link.created_at
    ) {
      found.problem(EVENTS, sequence, "hash_mismatch", `${link.hash}, as ${LINKS} says`, event.hash)
    } else if (event.timestamp < bounds.from || event.timestamp > bounds.to) {
      found.problem(
        EVENTS,
        sequence,
        "content_mismatch",
        `a timestamp within the bounds`,
        event.timestamp
      )
    }
  }

  /** verification.json and the counts of the manifest against what was read. */
  report() {
    const { described, found, said: report } = this
    if (!isObject(report) || !isObject(report.bounds) || !Array.isArray(report.breaks)) {
      if (this.has(VERIFICATION)) {
        found.problem(
          VERIFICATION,
          null,
          "content_mismatch",
          "a verification report",
          "something else"
        )
      }
      return
    }
    const differs = (what, expected, actual) => {
      if ((expected ?? null) !== (actual ?? null)) {
        found.problem(
          VERIFICATION,
          null,
          "report_mismatch",
          `${what} ${shown(expected)}`,
          `${what} ${shown(actual)}`
        )
      }
    }
    differs("tenant_id", this.tenant, report.tenant_id)
    differs("scheme", SCHEME, report.scheme)
    differs("bounds", canonical(described.bounds), canonical(report.bounds))
    differs("verified_at", described.generated_at, report.verified_at)
    differs("head", canonical(described.head ?? null), canonical(report.head ?? null))
    const first = this.log.first?.sequence_number ?? null
    const last = this.log.last?.sequence_number ?? null
    for (const file of [report, described]) {
      const said = file.last_sequence_number
      differs("first_sequence_number", first, file.first_sequence_number)
      if (last !== null && isSequence(said) && said > last) {
        found.problem(LINKS, last + 1, "tail_missing", range(last + 1, said), "none")
        break
      }
      differs("last_sequence_number", last, said)
    }
    differs("links", this.log.links, described.counts.links)
    differs("events", this.events, described.counts.events)
    differs("events_checked", this.log.links, report.events_checked)
    if (!this.filtered) differs("events_in_bounds", this.events, report.events_in_bounds)
    if (this.complete) differs("erased_events", this.erasedSeen, report.erased_events)
    this.head(report)
    this.accusations(report)
    this.notices = [...noticesOf(report, "events"), ...noticesOf(report.traces, "facts")]
    const { from, to } = report.bounds
    const { size } = this.erasures
    const erased = size === 0 ? "" : `; ${counted(size, "erasure")} named in the chain`
    found.checked.push(
      `${counted(this.log.links, "link")} of the chain of ${this.tenant}`
        + (first === null ? "" : `, ${range(first, last)}`)
        + ": each recomputed, and held against the one before it.",
      `${counted(this.events, "event")} from ${shown(from)} to ${shown(to)}: `
        + `contents, details, order and links recomputed${erased}.`
    )
  }

  /** A pack without an upper bound ends at the head that it names, and no pack after it. */
  head(report) {
    const { found, log } = this
    const { head } = report
    const said = isObject(head) ? head.sequence_number : undefined
    const own = log.last?.sequence_number
    const missing = isSequence(said) ? log.missingTo(said) : undefined
    if (missing !== undefined) {
      found.problem(LINKS, missing[0], "tail_missing", range(...missing), "none")
    } else if (log.ends === undefined || own === undefined) {
      return
    } else if (!isSequence(said) || said < own) {
      found.problem(VERIFICATION, own, "report_mismatch", `head ${own}`, `head ${shown(said)}`)
    } else if (said === own && head.hash !== log.last.hash) {
      found.problem(LINKS, own, "hash_mismatch", `head ${shown(head.hash)}`, log.last.hash)
    }
  }

  /** What the service itself had found when it made the pack. */
  accusations(report) {
    const { found } = this
    const { traces } = report
    const ofTraces = isObject(traces) && Array.isArray(traces.breaks) ? traces.breaks : []
    const breaks = [...report.breaks, ...ofTraces]
    for (const broken of breaks) {
      if (isObject(broken)) {
        const sequence = isSequence(broken.sequence_number) ? broken.sequence_number : null
        found.problem(
          VERIFICATION,
          sequence,
          shown(broken.reason),
          shown(broken.expected),
          shown(broken.actual)
        )
      }
    }
    const total = report.breaks_total
    const isBroken = report.valid !== true || isSequence(total)
    if (isBroken && breaks.length === 0) {
      found.problem(
        VERIFICATION,
        null,
        "report_mismatch",
        "a valid chain",
        `status ${shown(report.status)}`
      )
    }
  }

  /**
   * Erasures that the links do not reach: each needs a proof that a tree holds it whose root was
   * signed and is that of the links.
   */
  checkErasuresOutside() {
    for (const [sequence, { target }] of this.outside) {
      if (this.proven.has(sequence)) continue
      this.found.problem(
        ERASURES,
        target,
        "content_mismatch",
        "an erasure that is in the chain",
        `event ${sequence}, which neither ${LINKS} nor a signed tree of them holds`
      )
    }
  }

  async readProofs() {
    this.proven = new Set()
    for await (const line of this.lines(PROOFS)) {
      const proof = line === undefined ? undefined : jsonOf(line)
      const hashes = isObject(proof) ? proof.proof : undefined
      if (!Array.isArray(hashes) || !hashes.every(isHash)) {
        this.found.problem(PROOFS, null, "content_mismatch", "an inclusion proof", "something else")
        continue
      }
      const { sequence_number: sequence, tree_size: size } = proof
      const erasure = this.outside.get(sequence)
      const root = this.log.agreed.get(size)
      if (erasure === undefined || root === undefined || !isHash(erasure.hash)) continue
      const siblings = hashes.map(bytesOfHex)
      if (!isIncluded(this.host.sha256Bytes, erasure.hash, sequence, size, root, siblings)) continue
      this.proven.add(sequence)
      this.proving = Math.max(this.proving, size)
    }
  }

  // Execution traces

  /** Facts and the links of their chain side by side, both ascending. */
  async joinFacts() {
    const { found } = this
    const links = this.traces.checkedLinks()
    const next = async () => (await links.next()).value
    let link = await next()
    let previous = 0
    for await (const line of this.lines(FACTS)) {
      this.facts += 1
      const fact = line === undefined ? undefined : factOf(line)
      if (fact === undefined) {
        const place = this.isWhole && link !== undefined ? link.sequence_number : previous + 1
        found.problem(FACTS, place, "content_mismatch", "the JSON of a fact", "bytes that are none")
        previous = place
        while (link !== undefined && link.sequence_number <= place) link = await next()
        continue
      }
      const sequence = fact.chain_sequence
      if (sequence <= previous) {
        const reason = sequence === previous ? "duplicate_sequence" : "out_of_order"
        found.problem(
          FACTS,
          sequence,
          reason,
          `a sequence above ${previous}`,
          `sequence ${sequence}`
        )
        continue
      }
      if (this.isWhole && link !== undefined && sequence > link.sequence_number) {
        found.problem(
          FACTS,
          link.sequence_number,
          "sequence_gap",
          range(link.sequence_number, sequence - 1),
          "none"
        )
      }
      while (link !== undefined && link.sequence_number < sequence) link = await next()
      previous = sequence
      const isLinked = link !== undefined && link.sequence_number === sequence
      this.fact(line, fact, isLinked ? link : undefined)
      if (isLinked) link = await next()
    }
    const tail = this.isWhole ? link?.sequence_number : undefined
    while (link !== undefined) link = await next()
    if (tail !== undefined) {
      found.problem(
        FACTS,
        tail,
        "tail_missing",
        range(tail, this.traces.last.sequence_number),
        "none"
      )
    }
    this.checkTraceErasures()
  }

  fact(line, fact, link) {
    const { found } = this
    const sequence = fact.chain_sequence
    const faulty = factFaultOf(line, fact, this.tenant, this.sha256)
    if (link === undefined) {
      found.problem(FACTS, sequence, "hash_mismatch", `a link in ${TRACE_LINKS}`, "none")
    } else if (fact.prev_hash !== link.prev_hash) {
      found.problem(FACTS, sequence, "prev_hash_mismatch", link.prev_hash, fact.prev_hash)
    } else if (faulty !== undefined) found.fault(FACTS, sequence, faulty)
    else if (fact.hash !== link.hash) {
      found.problem(
        FACTS,
        sequence,
        "hash_mismatch",
        `${link.hash}, as ${TRACE_LINKS} says`,
        fact.hash
      )
    }
    const execution = this.executions.get(fact.execution_id) ?? new Execution(this.sha256)
    this.executions.set(fact.execution_id, execution)
    this.factNumber(execution, fact)
    execution.take(fact)
    const broken = execution.pieceFault(fact)
    if (broken !== undefined) found.fault(FACTS, sequence, broken)
  }

  /** Numbers without gaps, and details that are gone only where a later fact says so. */
  factNumber(execution, fact) {
    const { found } = this
    const sequence = fact.chain_sequence
    const expected = execution.facts + 1
    if (fact.fact_number !== expected) {
      const reason = fact.fact_number > expected ? "sequence_gap" : "duplicate_sequence"
      found.problem(
        FACTS,
        sequence,
        reason,
        `fact_number ${expected}`,
        `fact_number ${fact.fact_number}`
      )
    }
    execution.facts = Math.max(execution.facts, fact.fact_number)
    if (fact.type === "execution.erased") execution.undetailed.delete(fact.created_at)
    const { erased_at: time } = fact
    if (time !== undefined && !execution.undetailed.has(time)) {
      execution.undetailed.set(time, sequence)
    }
  }

  checkTraceErasures() {
    const unexplained = [...this.executions.values()].flatMap(({ undetailed }) => [...undetailed])
    for (const [time, sequence] of unexplained) {
      this.found.problem(
        FACTS,
        sequence,
        "content_mismatch",
        `a later fact execution.erased of ${time}`,
        "none"
      )
    }
  }

  /** Each execution of the file against its facts. */
  async checkExecutions() {
    const { found } = this
    const shownOnes = [...this.executions].filter(([, { onlyHolds }]) => !onlyHolds)
    const left = new Set(shownOnes.map(([id]) => id))
    this.executionLines = 0
    for await (const line of this.lines(EXECUTIONS)) {
      this.executionLines += 1
      const shownHere = this.traceLine(EXECUTIONS, line)
      if (shownHere === undefined) continue
      const wanted = left.delete(shownHere.id)
        ? this.executions.get(shownHere.id).shown()
        : undefined
      if (wanted === undefined || canonical(wanted) !== canonical(shownHere)) {
        found.problem(
          EXECUTIONS,
          null,
          "content_mismatch",
          wanted === undefined ? "an execution that its facts start, once" : canonical(wanted),
          canonical(shownHere)
        )
      }
    }
    if (left.size > 0) {
      found.problem(
        EXECUTIONS,
        null,
        "content_mismatch",
        `${counted(left.size, "execution")} more, as ${FACTS} says`,
        "none"
      )
    }
  }

  /** Each span of the file against the facts of its execution. */
  async checkSpans() {
    const { found } = this
    const seen = new Map()
    this.spanLines = 0
    let known = 0
    for await (const line of this.lines(SPANS)) {
      this.spanLines += 1
      const shownHere = this.traceLine(SPANS, line)
      if (shownHere === undefined) continue
      const { execution_id: executionId, id } = shownHere
      const ids = seen.get(executionId) ?? new Set()
      seen.set(executionId, ids)
      const isFirst = !ids.has(id)
      ids.add(id)
      const wanted = isFirst ? this.executions.get(executionId)?.shownSpan(id) : undefined
      if (wanted === undefined) {
        found.problem(
          SPANS,
          null,
          "content_mismatch",
          "a span that its facts start, once",
          canonical(shownHere)
        )
        continue
      }
      known += 1
      const [long, short] = [true, false].map((isLong) =>
        Object.fromEntries(
          Object.entries(shownHere).filter(([name]) => DETAIL_MEMBERS.includes(name) === isLong)
        )
      )
      if (canonical(wanted.core) !== canonical(short)) {
        found.problem(SPANS, null, "content_mismatch", canonical(wanted.core), canonical(short))
      } else if (this.sha256(canonical(long)) !== wanted.digest) {
        found.problem(
          SPANS,
          null,
          "content_mismatch",
          "the name, metadata and error that its facts say",
          canonical(long)
        )
      }
    }
    let all = 0
    for (const execution of this.executions.values()) all += execution.spanCount()
    if (known < all) {
      found.problem(
        SPANS,
        null,
        "content_mismatch",
        `${counted(all - known, "span")} more, as ${FACTS} says`,
        "none"
      )
    }
  }

  /** A line of executions or spans; undefined, and a problem, if it is none. */
  traceLine(file, line) {
    const value = line === undefined ? undefined : jsonOf(line)
    if (isObject(value) && isCanonical(value)) return value
    this.found.problem(file, null, "content_mismatch", "a JSON object", "bytes that are none")
    return undefined
  }

  /** What the manifest says of the traces against what was read. */
  checkTraceCounts() {
    const { described, found, traces } = this
    const { counts, trace_head: head } = described
    const differs = (what, expected, actual) => {
      if ((expected ?? null) === (actual ?? null)) return
      found.problem(
        MANIFEST,
        null,
        "report_mismatch",
        `${what} ${shown(expected)}`,
        `${what} ${shown(actual)}`
      )
    }
    const last = traces.last?.sequence_number ?? null
    differs("facts", this.facts, counts.facts)
    differs("trace_links", traces.links, counts.trace_links)
    differs("executions", this.executionLines, counts.executions)
    differs("spans", this.spanLines, counts.spans)
    differs(
      "first_trace_sequence_number",
      traces.first?.sequence_number,
      described.first_trace_sequence_number
    )
    differs("last_trace_sequence_number", last, described.last_trace_sequence_number)
    const said = isObject(head) ? head.sequence_number : undefined
    if (this.isWhole && (said ?? 0) !== (last ?? 0)) {
      if (isSequence(said) && said > (last ?? 0)) {
        found.problem(
          TRACE_LINKS,
          (last ?? 0) + 1,
          "tail_missing",
          range((last ?? 0) + 1, said),
          "none"
        )
      } else differs("trace_head", last, said)
    } else if (said === last && last !== null && head.hash !== traces.last.hash) {
      found.problem(
        TRACE_LINKS,
        last,
        "hash_mismatch",
        `head ${shown(head.hash)}`,
        traces.last.hash
      )
    }
    if (traces.links > 0) {
      found.checked.push(
        `${counted(this.facts, "fact")} of ${counted(this.executions.size, "execution")} and `
          + `${counted(traces.links, "link")} of their chain: each recomputed; executions and `
          + "spans are what the facts say."
      )
    }
  }

  /** What these files can't show, whatever they hold, and what the service says of them. */
  limits() {
    const { found } = this
    this.limitsOfOrigin()
    found.open.push(...this.notices)
    if (this.kept.length === 0) {
      found.open.push(
        "That nothing was rewritten and signed again by a holder of the signing key. A "
          + "checkpoint that you kept earlier shows it."
      )
    }
    if (this.log.removed > 0) {
      found.open.push(
        `That the events up to sequence ${this.log.removed} were removed by retention, as `
          + `${VERIFICATION} says: the pack holds nothing of them.`
      )
    }
    if (!this.complete && (this.events < this.log.links || !this.isWhole)) {
      found.open.push(
        `That ${EVENTS} leaves no event of the bounds out: it holds ${this.events} of `
          + `${this.log.links} linked events`
          + `${this.filtered ? ", those that the filter in the manifest selected" : ""}; the `
          + "manifest's signature is the service's word for it."
      )
    }
    if (!this.isWhole || this.facts < this.traces.links) {
      found.open.push(
        `That ${FACTS} leaves no execution of the period out: it holds ${this.facts} of `
          + `${this.traces.links} linked facts; the manifest's signature is the service's word for `
          + "it."
      )
    }
    for (const { values } of this.executions.values()) {
      for (const value of values) this.references.delete(value)
    }
    if (this.references.size > 0) {
      found.open.push(
        `What ${counted(this.references.size, "reference")} in metadata of events stand for: `
          + "the pack does not hold these values."
      )
    }
    if (this.has(PDF)) {
      found.open.push("The words of evidence.pdf: only that it is the file that was signed.")
    }
    found.open.push("The times: created_at is the service's own clock.")
    if (this.strangers !== undefined) {
      found.open.push(
        `Files in this folder that are not of the pack: ${this.strangers.join(", ")}.`
      )
    }
  }

  /** What the signature of the manifest leaves open. */
  limitsOfOrigin() {
    const { found, originSigner } = this
    const replaced = originSigner !== undefined && isReplaced(originSigner)
    if (originSigner === undefined) {
      const ids = this.ownKeys.map(({ id, name }) => `${name}+${id}`).join(", ")
      found.open.push(
        "Who made the pack: the signatures were checked with the key inside the pack "
          + `(${ids || "none"}), which its maker chose. Get the service's public key by another `
          + "way than the pack: from its operator in person or, if you trust that address, from the "
          + "service (/.well-known/alk-keys.json); or take a checkpoint that you kept. Give it."
      )
    } else if (replaced) {
      const {
        key: { id, name },
        retiredAt
      } = originSigner
      const since =
        `its manifest is signed by ${name}+${id}, which was replaced at ${retiredAt}; a holder `
        + "of the replaced key can have signed it since."
      const [event, fact] = [this.log, this.traces].map(({ last }) => last?.sequence_number ?? 0)
      found.open.push(
        this.isRecomputed()
          ? "When and by whom the pack was put together, and that the log went no further then than "
              + `event ${event} and fact ${fact}: ${since} Its events and facts are those that the `
              + "service signed."
          : `Who made the pack, and that it leaves nothing of its bounds out: ${since} Only a pack of `
              + "no period, with every event and fact from its first sequence on and without "
              + `${PDF}, can be shown by the trees alone, with a checkpoint that you kept or one of `
              + "the next key."
      )
    }
    if (this.pinned.length === 0) {
      const unendorsed = this.ownKeys.slice(1).filter(({ root }) => root)
      for (const { id, name } of unendorsed)
        found.open.push(`The key ${name}+${id}: no key of the pack has endorsed it.`)
    }
  }

  /** The standing of the key known from elsewhere that signed the manifest, one of now first. */
  get originSigner() {
    const standings = this.manifestSigners.map((vkey) => this.standingOf(vkey)).filter(Boolean)
    return standings.find((standing) => !isReplaced(standing)) ?? standings[0]
  }

  /**
   * True if the trees alone show all that the pack holds, and that it leaves nothing of its bounds
   * out, without the word of its manifest.
   */
  isRecomputed() {
    const { log, traces } = this
    const isShown = ({ last, shown }) => last === undefined || shown >= last.sequence_number
    return (
      log.links + traces.links > 0
      && this.isWhole
      && log.removed === 0
      && isShown(log)
      && isShown(traces)
      && log.shown >= this.proving
      && this.events === log.links
      && this.facts === traces.links
      && !this.has(PDF)
    )
  }

  /** True if a key known from elsewhere signed this, and is not replaced or all of it is shown. */
  isOriginChecked() {
    const { originSigner } = this
    return originSigner !== undefined && (!isReplaced(originSigner) || this.isRecomputed())
  }

  /** The line of keys as a report lists it. */
  keysOfReport() {
    const { log, manifestSigners, originLine, pinned, traces } = this
    const isKnown = pinned.length > 0 || this.keptSigners.size > 0
    const line = isKnown ? originLine : this.line
    return line.map((standing, at) => {
      const {
        endorsedBy,
        key: { id, name },
        next,
        retiredAt,
        trusted,
        vkey
      } = standing
      return {
        name,
        key_id: id,
        vkey,
        trusted: trusted === "root" && at > 0 ? "unendorsed" : trusted,
        pinned: trusted === "listed",
        endorsed_by: endorsedBy ?? null,
        next: next?.id ?? null,
        retired_at: retiredAt ?? null,
        handed_over: { events: log.handedOver(standing), traces: traces.handedOver(standing) },
        signs_manifest: manifestSigners.includes(vkey)
      }
    })
  }

  verdict() {
    if (this.found.total > 0) return "tampered"
    return this.isOriginChecked() ? "authentic" : "consistent"
  }

  result() {
    const { described, found } = this
    const order = (problem) => problem.sequence_number ?? 0
    const problems = [...found.problems].sort((left, right) => order(left) - order(right))
    return {
      verdict: this.verdict(),
      tenant_id: this.tenant ?? null,
      generated_at: described?.generated_at ?? null,
      bounds: described?.bounds ?? null,
      events: this.events,
      links: this.log?.links ?? 0,
      first_sequence_number: this.log?.first?.sequence_number ?? null,
      last_sequence_number: this.log?.last?.sequence_number ?? null,
      head_hash: this.log?.last?.hash ?? null,
      facts: this.facts,
      trace_links: this.traces?.links ?? 0,
      keys: this.described === undefined ? [] : this.keysOfReport(),
      problems,
      problems_total: found.total,
      checked: found.checked,
      not_established: found.open
    }
  }
}

// ZIP

const crcTable = Int32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

/*
 * A ZIP names its files twice, in a header before each and in a directory at its end, and programs
 * differ in which of the two they follow and in what they skip. So a ZIP is read only if it has one
 * reading: entries and their headers fill it from byte 0 to the directory, which ends where the end
 * record begins, which ends the file; both headers of an entry say the same; no comments, no
 * encryption, no parts, no links, no name twice (in whatever case) and none that leads elsewhere.
 * What breaks these rules is "unreadable", never "tampered": there is no one content to judge.
 * verify.py follows the same rules.
 */

const LOCAL = 0x04034b50
const LOCAL_BYTES = 30
const DESCRIPTOR = 0x08074b50
const CENTRAL = 0x02014b50
const CENTRAL_BYTES = 46
const END = 0x06054b50
const END_BYTES = 22
const WIDE_END = 0x06064b50
const WIDE_END_BYTES = 56
const LOCATOR = 0x07064b50
const LOCATOR_BYTES = 20
/** In place of a number that the ZIP64 field or record holds in 8 bytes. */
const WIDE_16 = 0xffff
const WIDE_32 = 0xffffffff
const ZIP64_FIELD = 1
/** Another name of the file, for programs that know this field. */
const NAME_FIELD = 0x7075
const STORED = 0
const DEFLATED = 8
const DESCRIPTOR_FLAG = 8
/** Besides it: how hard it was compressed (1, 2), and that the name is UTF-8 (11). */
const KNOWN_FLAGS = 0x080e
/** Kinds of files as Unix writes them into the attributes. */
const KIND_MASK = 0o170000
const PLAIN_FILE = 0o100000
const PLAIN_FOLDER = 0o040000

const ambiguous = (what) => new Unreadable(`the ZIP has no single reading: ${what}`)

/** Numbers of a ZIP: unsigned, little-endian. Beyond 2^53 they are inexact and fit nowhere. */
class ZipBytes {
  constructor(bytes) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  u16(at) {
    return this.view.getUint16(at, true)
  }

  u32(at) {
    return this.view.getUint32(at, true)
  }

  u64(at) {
    return Number(this.view.getBigUint64(at, true))
  }
}

const readZip = async (read, start, length) => {
  const bytes = await read(start, length)
  if (bytes.length !== length) throw ambiguous("it is cut off")
  return new ZipBytes(bytes)
}

/** `{count, bytes, start}` of the directory; it ends where the records of the end begin. */
const zipDirectory = async (read, size) => {
  const endAt = size - END_BYTES
  if (endAt < 0) throw ambiguous("it has no end record")
  const end = await readZip(read, endAt, END_BYTES)
  if (end.u32(0) !== END || end.u16(20) !== 0) throw ambiguous("it does not end with an end record")
  if (end.u16(4) !== 0 || end.u16(6) !== 0 || end.u16(8) !== end.u16(10)) {
    throw ambiguous("it has parts")
  }
  const said = { count: end.u16(10), bytes: end.u32(12), start: end.u32(16) }
  const wide = await wideDirectory(read, endAt)
  const directory = wide ?? said
  const isSaid = (name, all) => said[name] === directory[name] || said[name] === all
  if (!isSaid("count", WIDE_16) || !isSaid("bytes", WIDE_32) || !isSaid("start", WIDE_32)) {
    throw ambiguous("its two end records differ")
  }
  const stop = wide === undefined ? endAt : endAt - LOCATOR_BYTES - WIDE_END_BYTES
  if (directory.start + directory.bytes !== stop) {
    throw ambiguous("its directory does not end where its end record begins")
  }
  if (directory.count > FILES_MAX || directory.bytes > SMALL_FILE_BYTES_MAX) {
    throw new Unreadable("it holds more files than any pack")
  }
  return directory
}

/** The ZIP64 end record before the end record; undefined if there is none. */
const wideDirectory = async (read, endAt) => {
  if (endAt < LOCATOR_BYTES) return undefined
  const locator = await readZip(read, endAt - LOCATOR_BYTES, LOCATOR_BYTES)
  if (locator.u32(0) !== LOCATOR) return undefined
  const start = endAt - LOCATOR_BYTES - WIDE_END_BYTES
  const isPlaced = start >= 0 && locator.u64(8) === start
  if (!isPlaced || locator.u32(4) !== 0 || locator.u32(16) !== 1) {
    throw ambiguous("its ZIP64 end record is not before its end record")
  }
  const end = await readZip(read, start, WIDE_END_BYTES)
  const isPlain =
    end.u32(0) === WIDE_END
    && end.u64(4) === WIDE_END_BYTES - 12
    && end.u32(16) === 0
    && end.u32(20) === 0
    && end.u64(24) === end.u64(32)
  if (!isPlain) throw ambiguous("its ZIP64 end record is damaged")
  return { count: end.u64(32), bytes: end.u64(40), start: end.u64(48) }
}

/** The ZIP64 field of an extra field, or undefined. */
const wideField = (extra, name) => {
  const zip = new ZipBytes(extra)
  let wide
  for (let at = 0; at < extra.length; ) {
    const end = at + 4 > extra.length ? Infinity : at + 4 + zip.u16(at + 2)
    if (end > extra.length) throw ambiguous(`an extra field of ${name} is cut off`)
    const id = zip.u16(at)
    if (id === NAME_FIELD || (id === ZIP64_FIELD && wide !== undefined)) {
      throw ambiguous(`an extra field of ${name} contradicts its header`)
    }
    if (id === ZIP64_FIELD) wide = new ZipBytes(extra.subarray(at + 4, end))
    at = end
  }
  return wide
}

/** The numbers with those in their place that did not fit into 4 bytes, in this order. */
const widened = (numbers, wide, name) => {
  const places = numbers.flatMap((number, at) => (number === WIDE_32 ? [at] : []))
  if ((wide?.bytes.length ?? 0) !== 8 * places.length) {
    throw ambiguous(`the ZIP64 field of ${name} does not fit its header`)
  }
  return numbers.map((number, at) =>
    number === WIDE_32 ? wide.u64(8 * places.indexOf(at)) : number
  )
}

/** The entry of the directory at a place, and where the next one begins. */
const centralEntry = (directory, at) => {
  const { bytes } = directory
  if (at + CENTRAL_BYTES > bytes.length || directory.u32(at) !== CENTRAL) {
    throw ambiguous("its directory is damaged")
  }
  const nameEnd = at + CENTRAL_BYTES + directory.u16(at + 28)
  const next = nameEnd + directory.u16(at + 30)
  if (next > bytes.length || directory.u16(at + 32) !== 0 || directory.u16(at + 34) !== 0) {
    throw ambiguous("its directory is damaged, or holds a comment or a part")
  }
  const rawName = bytes.subarray(at + CENTRAL_BYTES, nameEnd)
  const name = nameOfEntry(rawName)
  const wide = wideField(bytes.subarray(nameEnd, next), name)
  const numbers = [directory.u32(at + 24), directory.u32(at + 20), directory.u32(at + 42)]
  const [size, packed, offset] = widened(numbers, wide, name)
  const entry = {
    name,
    rawName,
    size,
    packed,
    offset,
    isFolder: name.endsWith("/"),
    flags: directory.u16(at + 8),
    method: directory.u16(at + 10),
    crc: directory.u32(at + 16)
  }
  checkKind(entry, directory.u16(at + 40) & KIND_MASK)
  return { entry, next }
}

/** The name of an entry, of a folder with a slash at its end. */
const nameOfEntry = (raw) => {
  let name = ""
  for (const byte of raw) name += String.fromCharCode(byte)
  if (!isSafeName(name.endsWith("/") ? name.slice(0, -1) : name)) {
    throw ambiguous(`${JSON.stringify(name)} is no safe name`)
  }
  return name
}

const checkKind = ({ flags, isFolder, method, name, packed, size }, kind) => {
  if ((flags & ~KNOWN_FLAGS) !== 0 || (method !== STORED && method !== DEFLATED)) {
    throw ambiguous(`${name} is encrypted, or compressed in an unknown way`)
  }
  if (kind !== 0 && kind !== (isFolder ? PLAIN_FOLDER : PLAIN_FILE)) {
    throw ambiguous(`${name} is a link or a device`)
  }
  if ((isFolder && size + packed !== 0) || (method === STORED && size !== packed)) {
    throw ambiguous(`${name} has two sizes`)
  }
}

/** Holds the header before an entry, and what follows its data, against the directory. */
const checkLocal = async (read, entry, next) => {
  const { crc, flags, method, name, offset, packed, rawName, size } = entry
  const differs = () => ambiguous(`the two headers of ${name} differ`)
  if (offset + LOCAL_BYTES > next) throw ambiguous(`${name} overlaps the next entry`)
  const header = await readZip(read, offset, LOCAL_BYTES)
  const nameEnd = offset + LOCAL_BYTES + header.u16(26)
  entry.start = nameEnd + header.u16(28)
  const rest = next - entry.start - packed
  if (header.u32(0) !== LOCAL || header.u16(26) !== rawName.length) throw differs()
  if (rest < 0) throw ambiguous(`${name} overlaps the next entry`)
  const { bytes } = await readZip(read, offset + LOCAL_BYTES, entry.start - offset - LOCAL_BYTES)
  if (!rawName.every((byte, at) => byte === bytes[at])) throw differs()
  if (header.u16(6) !== flags || header.u16(8) !== method) throw differs()
  const wide = wideField(bytes.subarray(rawName.length), name)
  const numbers = [header.u32(14), ...widened([header.u32(22), header.u32(18)], wide, name)]
  const isStreamed = (flags & DESCRIPTOR_FLAG) !== 0
  const isSame = [crc, size, packed].every(
    (wanted, at) => numbers[at] === wanted || (isStreamed && numbers[at] === 0)
  )
  if (!isSame) throw differs()
  if (!isStreamed) {
    if (rest !== 0) throw ambiguous(`there are bytes after ${name}`)
    return
  }
  if (rest !== 16 && rest !== 24) throw ambiguous(`there are other bytes after ${name}`)
  const after = await readZip(read, entry.start + packed, rest)
  const sizes = rest === 16 ? [after.u32(8), after.u32(12)] : [after.u64(8), after.u64(16)]
  const isEnd =
    after.u32(0) === DESCRIPTOR && after.u32(4) === crc && sizes[0] === packed && sizes[1] === size
  if (!isEnd) throw differs()
}

/** The entries of a ZIP with one reading; each knows where its data starts. */
const zipEntries = async (read, size) => {
  const { bytes, count, start } = await zipDirectory(read, size)
  const directory = await readZip(read, start, bytes)
  const entries = []
  const known = new Set()
  let at = 0
  while (at < bytes) {
    const { entry, next } = centralEntry(directory, at)
    const name = entry.name.toLowerCase()
    if (known.has(name)) throw ambiguous(`more than one entry is named ${entry.name}`)
    known.add(name)
    entries.push(entry)
    at = next
  }
  if (entries.length !== count) throw ambiguous("its directory has another number of entries")
  const placed = [...entries].sort((left, right) => left.offset - right.offset)
  if ((placed[0]?.offset ?? start) !== 0) throw ambiguous("there are bytes before its first entry")
  for (const [index, entry] of placed.entries()) {
    await checkLocal(read, entry, placed[index + 1]?.offset ?? start)
  }
  return entries.filter(({ isFolder }) => !isFolder)
}

/** The inflated bytes of an entry; ends with an error if they are not what its header says. */
async function* entryChunks(file, { crc: wanted, method, name, packed, size: wantedSize, start }) {
  let crc = -1
  let size = 0
  try {
    for await (const chunk of file.stream(start, packed, method === DEFLATED)) {
      size += chunk.length
      if (size > wantedSize) break
      for (let at = 0; at < chunk.length; at++) {
        crc = (crc >>> 8) ^ crcTable[(crc ^ chunk[at]) & 0xff]
      }
      yield chunk
    }
  } catch (error) {
    throw new Unreadable(`${name} in the ZIP can't be read: ${error.message}`)
  }
  if (size !== wantedSize || (crc ^ -1) >>> 0 !== wanted) {
    throw new Unreadable(`${name} in the ZIP is damaged: its checksum differs`)
  }
}

/** A ZIP as the files of a pack: `file` reads a range, as a whole or as a stream, and inflates. */
const zipSource = async (file) => {
  try {
    const entries = new Map(
      (await zipEntries(file.read, file.size)).map((entry) => [entry.name, entry])
    )
    return {
      kind: "zip",
      names: [...entries.keys()],
      close: file.close,
      open: (name) => entryChunks(file, entries.get(name))
    }
  } catch (error) {
    await file.close?.()
    throw error
  }
}

/** What a report says of a key, in one line. */
const keyText = (key) => {
  const { endorsed_by: by, handed_over: sizes, name, next, retired_at: retired } = key
  const parts = []
  if (key.pinned) parts.push("given, or known by a checkpoint that was given")
  if (by !== null) parts.push(`endorsed by ${by}`)
  if (key.trusted === "root") parts.push("the first key of the pack")
  if (key.trusted === "unendorsed") parts.push("not endorsed by a key that counts")
  if (key.signs_manifest) parts.push(`signs ${MANIFEST}`)
  if (retired !== null) parts.push(`replaced${next === null ? "" : ` by ${next}`} at ${retired}`)
  if (sizes.events !== null) parts.push(`handed over at ${counted(sizes.events, "event")}`)
  if (sizes.traces !== null) parts.push(`handed over at ${counted(sizes.traces, "fact")}`)
  return `${name}+${key.key_id}: ${parts.join("; ")}`
}

/** The sequences that bounds name, if they name any. */
const sequencesText = ({ from_sequence: first, to_sequence: last }) =>
  (first ?? last ?? null) === null ? "" : `, sequences ${first ?? 1} to ${last ?? "the newest"}`

const unreadable = (message) => ({
  verdict: "unreadable",
  message,
  problems: [],
  problems_total: 0,
  checked: [],
  not_established: []
})

/** The check of a pack as a report; never throws for what a pack may hold. */
const checkPack = async (makeSource, host, options = {}) => {
  let source
  try {
    source = await makeSource()
    return await new PackCheck(source, host, options).run()
  } catch (error) {
    const isOdd = error instanceof RangeError || error instanceof NotCanonical
    if (!(error instanceof Unreadable) && !isOdd) throw error
    if (isOdd) error.message = "it holds JSON that no writer of packs makes"
    return unreadable(error.message)
  } finally {
    await source?.close?.()
  }
}
// ---- checks: end ----

// The host: Node

/** Node 20 hashes short texts at once in half the time. */
const digest = (data, encoding) =>
  crypto.hash === undefined
    ? crypto.createHash("sha256").update(data).digest(encoding)
    : crypto.hash("sha256", data, encoding ?? "buffer")

const sha256 = (data) => digest(data, "hex")

const host = {
  sha256,
  sha256Bytes: (data) => digest(data),
  hasher: () => {
    const hash = crypto.createHash("sha256")
    return { update: (chunk) => hash.update(chunk), hex: () => hash.digest("hex") }
  },
  verifyEd25519: async (raw, message, signature) => {
    const der = Buffer.concat([Buffer.from(SPKI_PREFIX, "hex"), raw])
    try {
      return crypto.verify(
        null,
        message,
        crypto.createPublicKey({ key: der, format: "der", type: "spki" }),
        signature
      )
    } catch {
      return false
    }
  }
}

/** Folders of a pack; what lies elsewhere below a folder is not looked at. */
const FOLDERS = ["", "checkpoints", "keys", "schema"]

const folderSource = async (folder) => {
  const names = []
  for (const inner of FOLDERS) {
    const found = await readdir(join(folder, inner), { withFileTypes: true }).catch(() => [])
    for (const entry of found)
      if (entry.isFile()) names.push(inner === "" ? entry.name : `${inner}/${entry.name}`)
  }
  if (names.length > FILES_MAX) throw new Unreadable("it holds more files than any pack")
  const open = (name) => createReadStream(join(folder, name))
  return { kind: "folder", names, open }
}

const zipFile = async (path) => {
  const handle = await open(path)
  const { size } = await handle.stat()
  return {
    size,
    close: () => handle.close(),
    read: async (position, length) => {
      if (length === 0) return new Uint8Array()
      const { buffer, bytesRead } = await handle.read(new Uint8Array(length), 0, length, position)
      return buffer.subarray(0, bytesRead)
    },
    async *stream(start, length, isPacked) {
      if (length === 0 && !isPacked) return
      const packed = createReadStream(path, { start, end: start + Math.max(length, 1) - 1 })
      try {
        if (!isPacked) return yield* packed
        const inflate = createInflateRaw()
        packed.on("error", (error) => inflate.destroy(error))
        yield* packed.pipe(inflate)
        if (inflate.bytesWritten !== length) throw new Error("bytes follow its compressed data")
      } finally {
        packed.destroy()
      }
    }
  }
}

const sourceOf = async (path) => {
  let found
  try {
    found = await stat(path)
  } catch {
    throw new Unreadable(`${path} can't be opened`)
  }
  return found.isDirectory() ? folderSource(path) : zipSource(await zipFile(path))
}

const HELP = `node verify.mjs [pack.zip | folder] [options]

Checks an alk evidence pack, without a network and without anything to install. Without a name it
checks the folder that it lies in.

  --public-key KEY     the service's public key, or a file that holds it: the answer of
                       /.well-known/alk-keys.json, C2SP (name+id+base64), PEM, or base64. May be
                       repeated.
  --checkpoint FILE    a checkpoint that you kept earlier: a signed note, or the answer of
                       /v1/chain/checkpoints/latest. May be repeated.
  --require-origin     exit code 3 unless the pack is authentic
  --json               the report as JSON

Verdicts and exit codes
  authentic    0  everything agrees, and a key or checkpoint that you gave shows who made it
  consistent   0  everything agrees; who made it is not shown (3 with --require-origin)
  tampered     1  something does not agree
  unreadable   2  there is no verdict on its content
`

const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu

/** What a pack says may hold anything, terminal commands too. */
const escaped = (value) =>
  String(value).replace(
    UNPRINTABLE,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

/** A value of a pack, which may be as long as a file. */
const printable = (value) => {
  const text = escaped(value)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

/** Sentences of this program: whole. */
const listed = (title, lines) =>
  lines.length === 0 ? [] : ["", title, ...lines.map((line) => `  - ${escaped(line)}`)]

const VERDICTS = {
  authentic: "AUTHENTIC",
  consistent: "CONSISTENT, ORIGIN NOT CHECKED",
  tampered: "TAMPERED"
}

const reportLines = (path, report) => {
  const { bounds, problems, problems_total: total, verdict } = report
  if (verdict === "unreadable") return [`UNREADABLE  ${path}`, `  ${printable(report.message)}`]
  const lines = [`${VERDICTS[verdict]}  ${path}`]
  if (bounds !== null) {
    const { events, generated_at: made, links, tenant_id: tenant } = report
    lines.push(
      `  tenant ${printable(tenant)}, ${printable(bounds.from)} to ${printable(bounds.to)}`
        + sequencesText(bounds),
      `  ${counted(events, "event")}, ${counted(links, "link")}, made ${printable(made)}`
    )
  }
  if (report.head_hash !== null) {
    lines.push(
      `  head hash ${printable(report.head_hash)}, sequence ${report.last_sequence_number}`
    )
  }
  if (total > 0)
    lines.push(
      "",
      `Problems: ${total}${total > problems.length ? `, the first ${problems.length}` : ""}`
    )
  for (const { actual, expected, file, reason, sequence_number: sequence } of problems) {
    const where = sequence === null ? "" : `sequence ${sequence}: `
    lines.push(`  ${where}${printable(reason)} in ${printable(file)}`)
    lines.push(`      expected ${printable(expected)}`, `      found    ${printable(actual)}`)
  }
  const { checked, not_established: open } = report
  return [
    ...lines,
    ...listed("Signing keys", report.keys.map(keyText)),
    ...listed("Checked", checked),
    ...listed("Not established", open)
  ]
}

const EXIT_CODES = { authentic: 0, consistent: 0, tampered: 1, unreadable: 2 }
const ORIGIN_NOT_CHECKED = 3

class Usage extends Error {}

const optionsOf = async (args) => {
  const options = {
    keys: [],
    checkpoints: [],
    json: false,
    isOriginRequired: false,
    path: undefined
  }
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]
    if (arg === "--json") options.json = true
    else if (arg === "--require-origin") options.isOriginRequired = true
    else if (arg === "--public-key" || arg === "--checkpoint") {
      const value = args[++at]
      if (value === undefined) throw new Usage(`${arg} needs a value`)
      const file = await readFile(value, "utf8").catch(() => undefined)
      if (arg === "--checkpoint") {
        if (file === undefined) throw new Usage(`${value} can't be opened`)
        options.checkpoints.push({ label: value, text: file })
        continue
      }
      const keys = keysOfText(file ?? value, sha256)
      if (keys.length === 0) throw new Usage(`${value} is no public key and no file that holds one`)
      options.keys.push(...keys)
    } else if (arg.startsWith("-") || options.path !== undefined) {
      throw new Usage(`unknown argument ${arg}`)
    } else options.path = arg
  }
  return options
}

/**
 * Checks the pack that the arguments name, or the folder `own`: `{text, exitCode}`. Throws Usage
 * for arguments that it does not know.
 */
const verify = async (args, own) => {
  const options = await optionsOf(args)
  const path = options.path ?? own
  if (path === undefined) throw new Usage("name a pack or a folder")
  const report = await checkPack(() => sourceOf(path), host, options)
  const text = options.json ? JSON.stringify(report, null, 2) : reportLines(path, report).join("\n")
  const isOpen = report.verdict === "consistent" && options.isOriginRequired
  return { text: `${text}\n`, exitCode: isOpen ? ORIGIN_NOT_CHECKED : EXIT_CODES[report.verdict] }
}

const main = async (args) => {
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(HELP)
    return 0
  }
  const { exitCode, text } = await verify(args, dirname(fileURLToPath(import.meta.url)))
  process.stdout.write(text)
  return exitCode
}

/** True if this file is the program that was started, not a module of another one. */
const isProgram = () => {
  const [, started] = process.argv
  if (started === undefined || !existsSync(started)) return false
  return realpathSync(started) === fileURLToPath(import.meta.url)
}

if (isProgram()) {
  main(process.argv.slice(2)).then(
    (code) => {
      process.exitCode = code
    },
    (error) => {
      process.stderr.write(`verify.mjs: ${error instanceof Usage ? error.message : error.stack}\n`)
      process.exitCode = EXIT_CODES.unreadable
    }
  )
}

// Of the checks, what browser.mjs takes.
export { checkPack, concat, hexOf, keysOfText, keyText, Unreadable, Usage, utf8, verify, zipSource }
