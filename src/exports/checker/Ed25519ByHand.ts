/**
 * Ed25519 (RFC 8032, section 5.1), verification only, and the SHA-512 (FIPS 180-4) that it needs: for
 * browsers whose WebCrypto has none.
 */

import { concat } from "../../domain/Bytes.ts"
import { rootBits } from "../../domain/Sha256ByHand.ts"
import type { Host } from "./Notes.ts"

type Words = [bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint]

const K64 = rootBits(80, 3)
const START64 = rootBits(8, 2)
const MASK64 = 0xffffffffffffffffn
const turn = (value: bigint, bits: bigint): bigint =>
  ((value >> bits) | (value << (64n - bits))) & MASK64

export const sha512 = (bytes: Uint8Array): Uint8Array => {
  const padded = new Uint8Array(Math.ceil((bytes.length + 17) / 128) * 128)
  padded.set(bytes)
  padded[bytes.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n)
  const state = [...START64]
  for (let start = 0; start < padded.length; start += 128) {
    const words = Array.from({ length: 16 }, (_, at) => view.getBigUint64(start + 8 * at))
    for (let i = 16; i < 80; i++) {
      const [x, y] = [words[i - 15]!, words[i - 2]!]
      const s0 = turn(x, 1n) ^ turn(x, 8n) ^ (x >> 7n)
      const s1 = turn(y, 19n) ^ turn(y, 61n) ^ (y >> 6n)
      words.push((words[i - 16]! + s0 + words[i - 7]! + s1) & MASK64)
    }
    let [a, b, c, d, e, f, g, h] = state as Words
    for (let i = 0; i < 80; i++) {
      const s1 = turn(e, 14n) ^ turn(e, 18n) ^ turn(e, 41n)
      const t1 = (h + s1 + ((e & f) ^ (~e & MASK64 & g)) + K64[i]! + words[i]!) & MASK64
      const s0 = turn(a, 28n) ^ turn(a, 34n) ^ turn(a, 39n)
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) & MASK64
      ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) & MASK64, c, b, a, (t1 + t2) & MASK64]
    }
    for (const [at, word] of [a, b, c, d, e, f, g, h].entries())
      state[at] = (state[at]! + word) & MASK64
  }
  const out = new Uint8Array(64)
  state.forEach((word, at) => new DataView(out.buffer).setBigUint64(8 * at, word))
  return out
}

// Ed25519

const P = 2n ** 255n - 19n
const L = 2n ** 252n + 27742317777372353535851937790883648493n
const mod = (value: bigint): bigint => ((value % P) + P) % P
const power = (base: bigint, exponent: bigint): bigint => {
  let result = 1n
  for (let square = mod(base); exponent > 0n; exponent >>= 1n, square = mod(square * square)) {
    if (exponent & 1n) result = mod(result * square)
  }
  return result
}
const D = mod(-121665n * power(121666n, P - 2n))
const SQRT_MINUS_1 = power(2n, (P - 1n) / 4n)
const number = (bytes: Uint8Array): bigint =>
  bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n)

/** In extended coordinates. */
type Point = readonly [x: bigint, y: bigint, z: bigint, t: bigint]

const addPoints = (p: Point, q: Point): Point => {
  const a = mod((p[1] - p[0]) * (q[1] - q[0]))
  const b = mod((p[1] + p[0]) * (q[1] + q[0]))
  const c = mod(2n * p[3] * q[3] * D)
  const d = mod(2n * p[2] * q[2])
  const [e, f, g, h] = [b - a, d - c, d + c, b + a] as const
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)]
}

const multiply = (factor: bigint, point: Point): Point => {
  let scalar = factor
  let result: Point = [0n, 1n, 1n, 0n]
  for (let sum = point; scalar > 0n; scalar >>= 1n, sum = addPoints(sum, sum)) {
    if (scalar & 1n) result = addPoints(result, sum)
  }
  return result
}

const pointOf = (bytes: Uint8Array): Point | undefined => {
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

const BASE = pointOf(Uint8Array.from({ length: 32 }, (_, at) => (at === 0 ? 0x58 : 0x66)))!

export const verifyByHand = (
  raw: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array
): boolean => {
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

/** By WebCrypto where that has Ed25519. */
export const verifyEd25519: Host["verifyEd25519"] = async (raw, message, signature) => {
  try {
    const [bytes, own, signed] = [raw, signature, message].map((one) => new Uint8Array(one))
    const key = await crypto.subtle.importKey("raw", bytes!, "Ed25519", false, ["verify"])
    return await crypto.subtle.verify("Ed25519", key, own!, signed!)
  } catch {
    return verifyByHand(raw, message, signature)
  }
}
