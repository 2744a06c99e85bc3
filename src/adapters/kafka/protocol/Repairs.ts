/**
 * What is replaced in kafkajs, for the whole process: ways in which it did not get over a connection
 * that was cut, or a broker that went away or fell silent.
 */
import { createRequire } from "node:module"
import type net from "node:net"

const require = createRequire(import.meta.url)

/** Bytes of the length before every answer. */
const LENGTH_BYTES = 4

/** What is used of kafkajs's `Connection`. */
interface Connection {
  isConnected(): boolean
  connect(): Promise<unknown>
  socket?: net.Socket
  chunks: Array<Buffer>
  bytesBuffered: number
  bytesNeeded: number
}

/**
 * A connection that was cut in the middle of an answer puts the next answer after the half that it
 * has, and never finds its place again. So the half is dropped before it reconnects.
 */
const forgetHalfAnswers = (): void => {
  const { prototype } = require("kafkajs/src/network/connection") as {
    readonly prototype: Connection
  }
  const { connect } = prototype
  prototype.connect = function () {
    if (!this.isConnected()) {
      this.socket?.removeAllListeners("data")
      this.chunks = []
      this.bytesBuffered = 0
      this.bytesNeeded = LENGTH_BYTES
    }
    return connect.call(this)
  }
}

/** What is used of kafkajs's `ConnectionPool`: all connections of a client to one broker. */
interface Connections {
  readonly pool: ReadonlyArray<Pick<Connection, "socket">>
}

/** An operating system takes connections for a process that has stopped: only answers tell. */
const closeSilent = (sockets: ReadonlyArray<net.Socket | undefined>): void => {
  for (const socket of sockets) socket?.destroy(new Error("no answer in time"))
}

const socketsOf = ({ pool }: Connections) => pool.map(({ socket }) => socket)

type Send = (this: Connections, request: unknown) => Promise<unknown>

/**
 * A broker that does not answer in time loses its connections, as with Java's client. Else it counts
 * as connected, and the next request is sent there as well.
 */
export const closingSilent = (send: Send): Send =>
  async function (request) {
    const sockets = socketsOf(this)
    try {
      return await send.call(this, request)
    } catch (error) {
      if (error instanceof Error && error.name === "KafkaJSRequestTimeoutError") {
        closeSilent(sockets)
      }
      throw error
    }
  }

const leaveSilentBrokers = (): void => {
  const { prototype } = require("kafkajs/src/network/connectionPool") as {
    readonly prototype: { send: Send }
  }
  prototype.send = closingSilent(prototype.send)
}

/** What is used of kafkajs's `Broker`. */
interface Broker {
  readonly connectionPool: Connections
}

type Connect = (this: Broker) => Promise<unknown>

interface ConnectionError extends Error {
  readonly broker?: string
}

const { KafkaJSConnectionError } = require("kafkajs/src/errors") as {
  readonly KafkaJSConnectionError: new (
    message: string,
    options: { readonly broker?: string | undefined; readonly code: string }
  ) => ConnectionError
}

/** Milliseconds from the first packet to a connection that requests can be sent on. */
const CONNECT_MS = 6_000

/**
 * kafkajs goes to another broker only if one refuses the connection. A proxy in front of a broker that
 * is gone, or a broker that ends, takes it and closes it; one that has stopped says nothing. kafkajs
 * then tried that broker alone, until the caller gave up. Every connection that does not come about
 * counts as refused.
 */
export const refusedUnlessConnected = (connect: Connect, withinMs = CONNECT_MS): Connect =>
  async function () {
    const timer = setTimeout(() => closeSilent(socketsOf(this.connectionPool)), withinMs)
    try {
      return await connect.call(this)
    } catch (error) {
      if (!(error instanceof KafkaJSConnectionError)) throw error
      const { broker, message } = error
      throw new KafkaJSConnectionError(message, { broker, code: "ECONNREFUSED" })
    } finally {
      clearTimeout(timer)
    }
  }

const tryOtherBrokers = (): void => {
  const { prototype } = require("kafkajs/src/broker") as {
    readonly prototype: { connect: Connect }
  }
  prototype.connect = refusedUnlessConnected(prototype.connect)
}

/** What is used of kafkajs's `ConsumerGroup`. */
export interface GroupMember {
  readonly groupId: string
  readonly cluster: { findGroupCoordinator(group: { readonly groupId: string }): Promise<unknown> }
  coordinator: unknown
}

type Heartbeat = (this: GroupMember, options: { readonly interval: number }) => Promise<unknown>

const NOT_REACHED = new Set([
  "KafkaJSConnectionError",
  "KafkaJSConnectionClosedError",
  "KafkaJSRequestTimeoutError"
])

/**
 * A member whose heartbeat does not reach the coordinator asks who coordinates the group now. kafkajs
 * went on with the one of before for longer than a session lasts, so a broker that went away took
 * every member out of its groups. The heartbeat fails as before; the next one goes to who is found.
 */
export const findingCoordinator = (heartbeat: Heartbeat): Heartbeat =>
  async function (options) {
    try {
      return await heartbeat.call(this, options)
    } catch (error) {
      if (error instanceof Error && NOT_REACHED.has(error.name)) {
        const { cluster, groupId } = this
        const found = await cluster.findGroupCoordinator({ groupId }).catch(() => undefined)
        if (found !== undefined) this.coordinator = found
      }
      throw error
    }
  }

const followCoordinators = (): void => {
  const { prototype } = require("kafkajs/src/consumer/consumerGroup") as {
    readonly prototype: { heartbeat: Heartbeat }
  }
  prototype.heartbeat = findingCoordinator(prototype.heartbeat)
}

/** What is used of kafkajs's `RequestQueue`: the requests of a connection that wait to be sent. */
interface RequestQueue {
  readonly pending: ReadonlyArray<unknown>
}

type LookAgain = (this: RequestQueue) => void

/**
 * kafkajs looks at the queue of each connection again and again, by a timer with a negative delay
 * (kafkajs #1751): a thousand times a second, for as long as it is connected. It has to look again only
 * where a request waits.
 */
export const lookingWhereSomeWait = (look: LookAgain): LookAgain =>
  function () {
    if (this.pending.length > 0) look.call(this)
  }

const restQueues = (): void => {
  const { prototype } = require("kafkajs/src/network/requestQueue") as {
    readonly prototype: { scheduleCheckPendingRequests: LookAgain }
  }
  prototype.scheduleCheckPendingRequests = lookingWhereSomeWait(
    prototype.scheduleCheckPendingRequests
  )
}

let isRepaired = false

/** All of it, once; before the first client is made. */
export const repairKafkajs = (): void => {
  if (isRepaired) return
  isRepaired = true
  forgetHalfAnswers()
  leaveSilentBrokers()
  tryOtherBrokers()
  followCoordinators()
  restQueues()
}
