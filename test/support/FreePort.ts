/**
 * A port that is free, for programs that can't be told to take any, and for those that have to come
 * back where they were. Outgoing connections of every process take ports of the system's ephemeral
 * range, and so does who listens on port 0: one of that range may be gone before the program listens.
 * So this one is outside of it, where only what was told its number listens.
 */
import { randomInt } from "node:crypto"
import { readFileSync } from "node:fs"
import { createServer } from "node:net"

/** Those below are of services that may run on a machine. */
const PORT_MIN = 10_000
const PORT_MAX = 65_535
/** What Linux comes with, for systems that don't say it there. */
const EPHEMERAL = "32768 60999"
const ATTEMPTS = 100

/** First and last port of the wider side of the ephemeral range. */
const outside = (): readonly [first: number, last: number] => {
  let range = EPHEMERAL
  try {
    range = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").trim()
  } catch {
    // No Linux.
  }
  const [low, high] = range.split(/\s+/).map(Number) as [number, number]
  const sides = [[PORT_MIN, low - 1] as const, [Math.max(PORT_MIN, high + 1), PORT_MAX] as const]
  const [widest] = sides.toSorted(([from, to], [first, last]) => last - first - (to - from))
  const [from, to] = widest!
  // A system that takes them all.
  return from < to ? [from, to] : [PORT_MIN, PORT_MAX]
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => {
      server.close(() => resolve(true))
    })
  })

/** So that a program that asks for several has different ones, although none listens yet. */
const given = new Set<number>()

export const freePort = async (): Promise<number> => {
  const [first, last] = outside()
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(first, last + 1)
    if (given.has(port)) continue
    given.add(port)
    if (await isFree(port)) return port
  }
  throw new Error(`no port from ${first} to ${last} was free in ${ATTEMPTS} attempts`)
}
