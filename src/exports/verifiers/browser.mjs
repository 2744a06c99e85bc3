/**
 * What the checks of verify.mjs need of a browser: hashes without WebCrypto, signatures, files, and
 * what is said of a report. verify.html has this in it, and the page of share links runs it in a
 * worker. The part between the two marks is what verify.html takes over.
 */
import {
  checkPack,
  concat,
  hexOf,
  keysOfText,
  keyText,
  Unreadable,
  utf8,
  zipSource
} from "./verify.mjs"

// ---- host: begin ----
// SHA-256 and SHA-512 (FIPS 180-4), since a page from the disk may have no WebCrypto

/** The first bits of the fractional parts of the roots of the first primes. */
const primes = []
for (let number = 2; primes.length < 80; number++)
  if (primes.every((prime) => number % prime !== 0)) primes.push(number)
const rootBits = (prime, power) => {
  // Newton on integers: the floor of prime^(1/power) * 2^64.
  const wanted = BigInt(prime) << BigInt(64 * power)
  let root = 1n << 70n
  for (;;) {
    const next =
      power === 2 ? (root + wanted / root) / 2n : (2n * root + wanted / (root * root)) / 3n
    if (next >= root) return root & 0xffffffffffffffffn
    root = next
  }
}
const K64 = primes.map((prime) => rootBits(prime, 3))
const K32 = Int32Array.from(K64.slice(0, 64), (bits) => Number(bits >> 32n))
const START64 = primes.slice(0, 8).map((prime) => rootBits(prime, 2))
const START32 = START64.map((bits) => Number(bits >> 32n) | 0)

/** Filled and read within one call each, so one for all is enough. */
const WORDS = new Int32Array(64)

class Sha256 {
  constructor() {
    this.state = new Int32Array(8)
    this.block = new Uint8Array(64)
    this.reset()
  }

  reset() {
    this.state.set(START32)
    this.filled = 0
    this.length = 0
    return this
  }

  update(bytes) {
    this.length += bytes.length
    let at = 0
    if (this.filled > 0) {
      at = Math.min(64 - this.filled, bytes.length)
      this.block.set(bytes.subarray(0, at), this.filled)
      this.filled += at
      if (this.filled < 64) return this
      this.compress(this.block, 0)
      this.filled = 0
    }
    for (; at + 64 <= bytes.length; at += 64) this.compress(bytes, at)
    this.block.set(bytes.subarray(at))
    this.filled = bytes.length - at
    return this
  }

  compress(bytes, start) {
    const { state } = this
    const words = WORDS
    for (let i = 0; i < 16; i++) {
      const at = start + 4 * i
      words[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]
    }
    for (let i = 16; i < 64; i++) {
      const x = words[i - 15]
      const y = words[i - 2]
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10)
      words[i] = (words[i - 16] + s0 + words[i - 7] + s1) | 0
    }
    let a = state[0],
      b = state[1],
      c = state[2],
      d = state[3]
    let e = state[4],
      f = state[5],
      g = state[6],
      h = state[7]
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K32[i] + words[i]) | 0
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
      h = g
      g = f
      f = e
      e = (d + t1) | 0
      d = c
      c = b
      b = a
      a = (t1 + t2) | 0
    }
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d
    state[4] += e
    state[5] += f
    state[6] += g
    state[7] += h
  }

  digest() {
    const { filled, length } = this
    const end = new Uint8Array(filled < 56 ? 64 - filled : 128 - filled)
    end[0] = 0x80
    const view = new DataView(end.buffer)
    view.setUint32(end.length - 8, Math.floor(length / 2 ** 29))
    view.setUint32(end.length - 4, (length * 8) >>> 0)
    this.update(end)
    const out = new DataView(new ArrayBuffer(32))
    for (let at = 0; at < 8; at++) out.setInt32(4 * at, this.state[at])
    return new Uint8Array(out.buffer)
  }

  hex() {
    return hexOf(this.digest())
  }
}

const MASK64 = 0xffffffffffffffffn
const turn = (value, bits) => ((value >> bits) | (value << (64n - bits))) & MASK64

const sha512 = (bytes) => {
  const padded = new Uint8Array(Math.ceil((bytes.length + 17) / 128) * 128)
  padded.set(bytes)
  padded[bytes.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n)
  const state = [...START64]
  for (let start = 0; start < padded.length; start += 128) {
    const words = Array.from({ length: 16 }, (_, at) => view.getBigUint64(start + 8 * at))
    for (let i = 16; i < 80; i++) {
      const [x, y] = [words[i - 15], words[i - 2]]
      const s0 = turn(x, 1n) ^ turn(x, 8n) ^ (x >> 7n)
      const s1 = turn(y, 19n) ^ turn(y, 61n) ^ (y >> 6n)
      words.push((words[i - 16] + s0 + words[i - 7] + s1) & MASK64)
    }
    let [a, b, c, d, e, f, g, h] = state
    for (let i = 0; i < 80; i++) {
      const s1 = turn(e, 14n) ^ turn(e, 18n) ^ turn(e, 41n)
      const t1 = (h + s1 + ((e & f) ^ (~e & MASK64 & g)) + K64[i] + words[i]) & MASK64
      const s0 = turn(a, 28n) ^ turn(a, 34n) ^ turn(a, 39n)
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) & MASK64
      ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) & MASK64, c, b, a, (t1 + t2) & MASK64]
    }
    ;[a, b, c, d, e, f, g, h].forEach((word, at) => (state[at] = (state[at] + word) & MASK64))
  }
  const out = new Uint8Array(64)
  state.forEach((word, at) => new DataView(out.buffer).setBigUint64(8 * at, word))
  return out
}

// Ed25519 (RFC 8032, section 5.1), verification only, where WebCrypto has none

const P = 2n ** 255n - 19n
const L = 2n ** 252n + 27742317777372353535851937790883648493n
const mod = (value) => ((value % P) + P) % P
const power = (base, exponent) => {
  let result = 1n
  for (let square = mod(base); exponent > 0n; exponent >>= 1n, square = mod(square * square)) {
    if (exponent & 1n) result = mod(result * square)
  }
  return result
}
const D = mod(-121665n * power(121666n, P - 2n))
const SQRT_MINUS_1 = power(2n, (P - 1n) / 4n)
const number = (bytes) => bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n)

const addPoints = (p, q) => {
  const a = mod((p[1] - p[0]) * (q[1] - q[0]))
  const b = mod((p[1] + p[0]) * (q[1] + q[0]))
  const c = mod(2n * p[3] * q[3] * D)
  const d = mod(2n * p[2] * q[2])
  const [e, f, g, h] = [b - a, d - c, d + c, b + a]
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)]
}

const multiply = (scalar, point) => {
  let result = [0n, 1n, 1n, 0n]
  for (let sum = point; scalar > 0n; scalar >>= 1n, sum = addPoints(sum, sum)) {
    if (scalar & 1n) result = addPoints(result, sum)
  }
  return result
}

const pointOf = (bytes) => {
  const encoded = number(bytes)
  const sign = encoded >> 255n
  const y = encoded & (2n ** 255n - 1n)
  if (y >= P) return undefined
  const square = mod((y * y - 1n) * power(D * y * y + 1n, P - 2n))
  let x = power(square, (P + 3n) / 8n)
  if (mod(x * x - square) !== 0n) x = mod(x * SQRT_MINUS_1)
  if (mod(x * x - square) !== 0n || (x === 0n && sign === 1n)) return undefined
  if ((x & 1n) !== sign) x = P - x
  return [x, y, 1n, mod(x * y)]
}

const BASE = pointOf(Uint8Array.from({ length: 32 }, (_, at) => (at === 0 ? 0x58 : 0x66)))

const verifyByHand = (raw, message, signature) => {
  if (raw.length !== 32 || signature.length !== 64) return false
  const [key, nonce] = [pointOf(raw), pointOf(signature.subarray(0, 32))]
  const scalar = number(signature.subarray(32))
  if (key === undefined || nonce === undefined || scalar >= L) return false
  const challenge = number(sha512(concat(signature.subarray(0, 32), raw, message))) % L
  const left = multiply(scalar, BASE)
  const right = addPoints(nonce, multiply(challenge, key))
  return (
    mod(left[0] * right[2] - right[0] * left[2]) === 0n
    && mod(left[1] * right[2] - right[1] * left[2]) === 0n
  )
}

// The host: a browser

const bytesOf = (data) => (typeof data === "string" ? utf8.encode(data) : data)

const atOnce = new Sha256()

const host = {
  sha256: (data) => atOnce.reset().update(bytesOf(data)).hex(),
  sha256Bytes: (data) => atOnce.reset().update(data).digest(),
  hasher: () => new Sha256(),
  verifyEd25519: async (raw, message, signature) => {
    try {
      const key = await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"])
      return await crypto.subtle.verify("Ed25519", key, signature, message)
    } catch {
      return verifyByHand(raw, message, signature)
    }
  }
}

/** Milliseconds of work after which the page gets a moment to draw. */
const BREATH_MS = 60

async function* chunksOf(stream) {
  const reader = stream.getReader()
  let breath = performance.now()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
      if (performance.now() - breath < BREATH_MS) continue
      await new Promise((resolve) => setTimeout(resolve))
      breath = performance.now()
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

const inflaterOf = () => {
  try {
    return new DecompressionStream("deflate-raw")
  } catch {
    throw new Unreadable("this browser can't open compressed ZIPs: use a newer one, or verify.py")
  }
}

/** A browser lets go of a file that has changed on the disk. */
const readable = (reading, name) =>
  reading.catch(() => {
    throw new Unreadable(`${name} has changed since it was chosen, or is gone: choose it again`)
  })

const fileOf = (blob) => ({
  size: blob.size,
  read: async (start, length) =>
    new Uint8Array(await readable(blob.slice(start, start + length).arrayBuffer(), blob.name)),
  stream: (start, length, isPacked) => {
    const stream = blob.slice(start, start + length).stream()
    return chunksOf(isPacked ? stream.pipeThrough(inflaterOf()) : stream)
  }
})

// What is said of a report

const words = {
  authentic: "Authentic",
  consistent: "Consistent, origin not checked",
  tampered: "Tampered with",
  unreadable: "Unreadable"
}

const sentenceOf = (report) => {
  if (report.verdict === "unreadable") return `No verdict: ${report.message}.`
  if (report.verdict === "authentic") {
    return "Everything that can be checked in this pack agrees, and what you gave shows that the service signed it."
  }
  const replaced = report.keys.find(
    (key) => key.signs_manifest && key.retired_at !== null && key.trusted !== "root"
  )
  if (report.verdict === "consistent" && replaced !== undefined) {
    return `Everything that can be checked in this pack agrees. It does not show who made it: its key ${replaced.key_id} was replaced at ${replaced.retired_at}, and a holder of the replaced key can have signed it since.`
  }
  if (report.verdict === "consistent") {
    return "Everything that can be checked in this pack agrees. Who made it was not checked: that needs the service’s public key, or a checkpoint that you kept. Anyone can make such a pack with a key of their own."
  }
  const count = report.problems_total
  const at = report.problems.find(({ sequence_number: sequence }) => sequence !== null)
  const where = at === undefined ? "" : `, the first event at sequence ${at.sequence_number}`
  return `${count === 1 ? "One thing does" : `${count.toLocaleString("en")} things do`} not hold${where}. Don’t rely on this pack.`
}
// ---- host: end ----

/** The check of a pack in a file, as a report. `text`: public keys from elsewhere, or nothing. */
const checkFile = async (blob, text, progress) => {
  const keys = text === "" ? [] : keysOfText(text, host.sha256)
  const options = { keys, checkpoints: [], progress }
  const report = await checkPack(() => zipSource(fileOf(blob)), host, options)
  return { report, isKeyKnown: keys.length > 0 }
}

export { checkFile, keyText, sentenceOf, words }
