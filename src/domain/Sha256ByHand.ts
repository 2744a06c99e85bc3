/** SHA-256 (FIPS 180-4) for browsers, as `#sha256`; see Sha256. */
import { hexOf, utf8 } from "./Bytes.ts"

/** Bytes that are hashed piece by piece. */
export interface Hasher {
  update(bytes: Uint8Array): unknown
  /** 64 hex digits; ends the hasher. */
  hex(): string
}

/**
 * The first 64 bits of the fractional parts of the roots, square (2) or cube (3), of the first
 * primes.
 */
export const rootBits = (count: number, power: 2 | 3): ReadonlyArray<bigint> => {
  const primes: Array<number> = []
  for (let number = 2; primes.length < count; number++)
    if (primes.every((prime) => number % prime !== 0)) primes.push(number)
  return primes.map((prime) => {
    // Newton on integers: the floor of prime^(1/power) * 2^64.
    const wanted = BigInt(prime) << BigInt(64 * power)
    let root = 1n << 70n
    for (;;) {
      const next =
        power === 2 ? (root + wanted / root) / 2n : (2n * root + wanted / (root * root)) / 3n
      if (next >= root) return root & 0xffffffffffffffffn
      root = next
    }
  })
}

const K32 = Int32Array.from(rootBits(64, 3), (bits) => Number(bits >> 32n))
const START32 = rootBits(8, 2).map((bits) => Number(bits >> 32n) | 0)

/** Filled and read within one call each, so one for all is enough. */
const WORDS = new Int32Array(64)

/** One hash after the other, each after a reset. */
export class Sha256 {
  readonly #state = new Int32Array(8)
  readonly #block = new Uint8Array(64)
  #filled = 0
  #length = 0

  constructor() {
    this.reset()
  }

  reset(): this {
    this.#state.set(START32)
    this.#filled = 0
    this.#length = 0
    return this
  }

  update(bytes: Uint8Array): this {
    this.#length += bytes.length
    let at = 0
    if (this.#filled > 0) {
      at = Math.min(64 - this.#filled, bytes.length)
      this.#block.set(bytes.subarray(0, at), this.#filled)
      this.#filled += at
      if (this.#filled < 64) return this
      this.#compress(this.#block, 0)
      this.#filled = 0
    }
    for (; at + 64 <= bytes.length; at += 64) this.#compress(bytes, at)
    this.#block.set(bytes.subarray(at))
    this.#filled = bytes.length - at
    return this
  }

  #compress(bytes: Uint8Array, start: number): void {
    const state = this.#state
    const words = WORDS
    for (let i = 0; i < 16; i++) {
      const at = start + 4 * i
      words[i] =
        (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
    }
    for (let i = 16; i < 64; i++) {
      const x = words[i - 15]!
      const y = words[i - 2]!
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10)
      words[i] = (words[i - 16]! + s0 + words[i - 7]! + s1) | 0
    }
    let [a, b, c, d] = [state[0]!, state[1]!, state[2]!, state[3]!]
    let [e, f, g, h] = [state[4]!, state[5]!, state[6]!, state[7]!]
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K32[i]! + words[i]!) | 0
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
    state[0]! += a
    state[1]! += b
    state[2]! += c
    state[3]! += d
    state[4]! += e
    state[5]! += f
    state[6]! += g
    state[7]! += h
  }

  digest(): Uint8Array {
    const [filled, length] = [this.#filled, this.#length]
    const end = new Uint8Array(filled < 56 ? 64 - filled : 128 - filled)
    end[0] = 0x80
    const view = new DataView(end.buffer)
    view.setUint32(end.length - 8, Math.floor(length / 2 ** 29))
    view.setUint32(end.length - 4, (length * 8) >>> 0)
    this.update(end)
    const out = new DataView(new ArrayBuffer(32))
    for (let at = 0; at < 8; at++) out.setInt32(4 * at, this.#state[at]!)
    return new Uint8Array(out.buffer)
  }

  hex(): string {
    return hexOf(this.digest())
  }
}

const atOnce = new Sha256()
const of = (data: string | Uint8Array): Sha256 =>
  atOnce.reset().update(typeof data === "string" ? utf8.encode(data) : data)

/** 64 hex digits over bytes, or over a text in UTF-8. */
export const sha256 = (data: string | Uint8Array): string => of(data).hex()

/** The 32 bytes of it. */
export const sha256Bytes = (data: string | Uint8Array): Uint8Array => of(data).digest()

export const sha256Hasher = (): Hasher => new Sha256()
