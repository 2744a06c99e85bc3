/** What hashing alone takes. */
import { createHash } from "node:crypto"

const SECONDS_MIN = 1

/** Bodies a second of SHA-256 on one thread: after one turn, all of them again for a second. */
export const hashRate = (bodies: ReadonlyArray<Buffer>): number => {
  const turn = () => {
    for (const body of bodies) createHash("sha256").update(body).digest()
  }
  turn()
  const started = performance.now()
  let turns = 0
  for (; performance.now() - started < SECONDS_MIN * 1_000; turns++) turn()
  return (turns * bodies.length) / ((performance.now() - started) / 1_000)
}
