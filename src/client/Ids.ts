/** Ids that the client makes: UUIDv7 (RFC 9562), which sort by the time at which they were made. */

const RANDOM_BYTES = 10

let lastMs = 0
let lastCount = 0

/** Ids of one millisecond count upwards from a random number below this. */
const COUNT_START_MAX = 0x800
const COUNT_MAX = 0xfff

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0")

/** A new id, greater than those that were made before it in this process. */
export const newId = (now: number = Date.now()): string => {
  const random = crypto.getRandomValues(new Uint8Array(RANDOM_BYTES))
  const start = ((random[8]! << 8) | random[9]!) % COUNT_START_MAX
  if (now > lastMs) [lastMs, lastCount] = [now, start]
  else if (lastCount < COUNT_MAX) lastCount += 1
  else [lastMs, lastCount] = [lastMs + 1, start]
  const time = hex(lastMs, 12)
  const tail = Array.from(random.subarray(0, 8), (byte) => hex(byte, 2)).join("")
  const variant = hex(0x80 | (random[0]! & 0x3f), 2)
  return (
    `${time.slice(0, 8)}-${time.slice(8)}-7${hex(lastCount, 3)}`
    + `-${variant}${tail.slice(2, 4)}-${tail.slice(4)}`
  )
}
