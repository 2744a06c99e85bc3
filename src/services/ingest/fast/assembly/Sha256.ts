/**
 * AssemblyScript. SHA-256 of many messages: four at a time, one in each 32-bit lane of a vector.
 * A lane whose message ends takes the next one.
 */
import { JOB_BYTES, JOBS } from "./Layout"

const ROUND_CONSTANTS = memory.data<u32>([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
])
const INITIAL_STATE = memory.data<u32>([
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
])
const LANES: u32 = 4
const VECTOR: usize = 16
const BLOCK_BYTES: usize = 64
const STATE_WORDS: usize = 8
/** The 64 words of the message schedule, and the states: a vector of four lanes each. */
const SCHEDULE = memory.data(64 * 16, 16)
const STATE = memory.data(8 * 16, 16)
/** What each lane is working on: the next block, blocks left, where the hash goes, its words. */
const WORK = memory.data(4 * 16, 16)

/** Jobs that are waiting for hashAll. */
let jobs: u32 = 0

function rotate(words: v128, bits: i32): v128 {
  return v128.or(i32x4.shr_u(words, bits), i32x4.shl(words, 32 - bits))
}

/** Four big-endian words of a message. */
function loadWords(at: usize): v128 {
  const bytes = v128.load(at)
  return i8x16.shuffle(bytes, bytes, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12)
}

/** The 16 words of four blocks, so that a vector holds the same word of each block. */
function loadBlocks(): void {
  const first = <usize>load<u32>(WORK)
  const second = <usize>load<u32>(WORK, 16)
  const third = <usize>load<u32>(WORK, 32)
  const fourth = <usize>load<u32>(WORK, 48)
  for (let at: usize = 0; at < BLOCK_BYTES; at += VECTOR) {
    const a = loadWords(first + at)
    const b = loadWords(second + at)
    const c = loadWords(third + at)
    const d = loadWords(fourth + at)
    const ab0 = i32x4.shuffle(a, b, 0, 4, 1, 5)
    const ab1 = i32x4.shuffle(a, b, 2, 6, 3, 7)
    const cd0 = i32x4.shuffle(c, d, 0, 4, 1, 5)
    const cd1 = i32x4.shuffle(c, d, 2, 6, 3, 7)
    const words = SCHEDULE + at * LANES
    v128.store(words, i32x4.shuffle(ab0, cd0, 0, 1, 4, 5))
    v128.store(words, i32x4.shuffle(ab0, cd0, 2, 3, 6, 7), 16)
    v128.store(words, i32x4.shuffle(ab1, cd1, 0, 1, 4, 5), 32)
    v128.store(words, i32x4.shuffle(ab1, cd1, 2, 3, 6, 7), 48)
  }
}

function extendSchedule(): void {
  for (let at = SCHEDULE + 16 * VECTOR; at < SCHEDULE + 64 * VECTOR; at += VECTOR) {
    const w15 = v128.load(at - 15 * VECTOR)
    const w2 = v128.load(at - 2 * VECTOR)
    const s0 = v128.xor(v128.xor(rotate(w15, 7), rotate(w15, 18)), i32x4.shr_u(w15, 3))
    const s1 = v128.xor(v128.xor(rotate(w2, 17), rotate(w2, 19)), i32x4.shr_u(w2, 10))
    const older = i32x4.add(v128.load(at - 16 * VECTOR), s0)
    v128.store(at, i32x4.add(older, i32x4.add(v128.load(at - 7 * VECTOR), s1)))
  }
}

/** One block in each lane. */
function compress(): void {
  loadBlocks()
  extendSchedule()
  let a = v128.load(STATE)
  let b = v128.load(STATE, 16)
  let c = v128.load(STATE, 32)
  let d = v128.load(STATE, 48)
  let e = v128.load(STATE, 64)
  let f = v128.load(STATE, 80)
  let g = v128.load(STATE, 96)
  let h = v128.load(STATE, 112)
  for (let round: usize = 0; round < 64; round++) {
    const s1 = v128.xor(v128.xor(rotate(e, 6), rotate(e, 11)), rotate(e, 25))
    const choice = v128.bitselect(f, g, e)
    const constant = v128.load32_splat(ROUND_CONSTANTS + round * 4)
    const word = i32x4.add(constant, v128.load(SCHEDULE + round * VECTOR))
    const t1 = i32x4.add(i32x4.add(i32x4.add(h, s1), choice), word)
    const s0 = v128.xor(v128.xor(rotate(a, 2), rotate(a, 13)), rotate(a, 22))
    const t2 = i32x4.add(s0, v128.bitselect(c, a, v128.xor(a, b)))
    h = g
    g = f
    f = e
    e = i32x4.add(d, t1)
    d = c
    c = b
    b = a
    a = i32x4.add(t1, t2)
  }
  v128.store(STATE, i32x4.add(v128.load(STATE), a))
  v128.store(STATE, i32x4.add(v128.load(STATE, 16), b), 16)
  v128.store(STATE, i32x4.add(v128.load(STATE, 32), c), 32)
  v128.store(STATE, i32x4.add(v128.load(STATE, 48), d), 48)
  v128.store(STATE, i32x4.add(v128.load(STATE, 64), e), 64)
  v128.store(STATE, i32x4.add(v128.load(STATE, 80), f), 80)
  v128.store(STATE, i32x4.add(v128.load(STATE, 96), g), 96)
  v128.store(STATE, i32x4.add(v128.load(STATE, 112), h), 112)
}

/** The hash so far of a lane, as bytes, and the state that a message begins with. */
function takeHash(lane: usize, to: usize, words: usize): void {
  const state = STATE + lane * 4
  for (let word: usize = 0; word < words; word++) {
    store<u32>(to + word * 4, bswap<u32>(load<u32>(state + word * VECTOR)))
  }
}

function beginState(lane: usize): void {
  const state = STATE + lane * 4
  for (let word: usize = 0; word < STATE_WORDS; word++) {
    store<u32>(state + word * VECTOR, load<u32>(INITIAL_STATE + word * 4))
  }
}

/** Gives a lane a job. Without one it repeats a block of the first job, and the result is dropped. */
function giveJob(lane: usize, job: u32): bool {
  const work = WORK + lane * VECTOR
  if (job < jobs) {
    v128.store(work, v128.load(JOBS + job * JOB_BYTES))
    beginState(lane)
    return true
  }
  store<u32>(work, load<u32>(JOBS))
  store<u32>(work, 0, 4)
  return false
}

/**
 * Have a message hashed by the next hashAll: `length` bytes, with room for the end that SHA-256
 * adds. The first `words` words of the hash go to `to`. The place after the padded message.
 */
export function addJob(message: usize, length: usize, to: usize, words: u32): usize {
  const blocks = (length + 9 + 63) >> 6
  const end = message + blocks * BLOCK_BYTES
  for (let at = message + length; at < end; at += VECTOR) v128.store(at, i64x2.splat(0))
  store<u8>(message + length, 0x80)
  store<u64>(end - 8, bswap<u64>(<u64>length * 8))
  const job = JOBS + jobs * JOB_BYTES
  store<u32>(job, <u32>message)
  store<u32>(job, <u32>blocks, 4)
  store<u32>(job, <u32>to, 8)
  store<u32>(job, words, 12)
  jobs++
  return end
}

/** Do all jobs. */
export function hashAll(): void {
  let next: u32 = 0
  let busy: u32 = 0
  if (jobs === 0) return
  for (let lane: usize = 0; lane < LANES; lane++) if (giveJob(lane, next++)) busy++
  while (busy > 0) {
    compress()
    for (let lane: usize = 0; lane < LANES; lane++) {
      const work = WORK + lane * VECTOR
      const left = load<u32>(work, 4)
      if (left === 0) continue
      if (left > 1) {
        store<u32>(work, load<u32>(work) + <u32>BLOCK_BYTES)
        store<u32>(work, left - 1, 4)
      } else {
        takeHash(lane, load<u32>(work, 8), load<u32>(work, 12))
        if (!giveJob(lane, next++)) busy--
      }
    }
  }
  jobs = 0
}

/** Forget the jobs of a request that was given up. */
export function dropJobs(): void {
  jobs = 0
}
