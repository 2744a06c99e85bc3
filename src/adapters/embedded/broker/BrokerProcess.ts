/**
 * One life of the embedded broker: a child process in a session of its own, from its start to its
 * end, with `broker.sh` beside it to end it when alk is gone.
 */
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import { constants } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { Deferred, Effect, type Scope } from "effect"
import { Kafka, logLevel } from "kafkajs"
import { repairKafkajs } from "../../kafka/protocol/Repairs.ts"
import { childEnvironment } from "../Command.ts"
import { anyFreePort, LOOPBACK } from "../FreePort.ts"
import { identityOf } from "../ProcessIdentity.ts"
import {
  type BrokerNotStarted,
  brokerNotStarted,
  explainEnd,
  inFolder,
  loggedSince,
  logPositions
} from "./BrokerNotStarted.ts"
import { endProcess, GRACE_SECONDS, writeRecord } from "./BrokerRecord.ts"
import { brokerArguments, brokerPaths, serverProperties, writeSettings } from "./BrokerSettings.ts"
import { type BrokerUsers, PROGRAM, signInOf } from "./BrokerUsers.ts"

const launcher = fileURLToPath(new URL("broker.sh", import.meta.url))

/** Recovering a large log after a kill takes long; the process is watched meanwhile. */
const START_SECONDS_MAX = 600
const ANSWER_POLL_MILLISECONDS = 100
const ANSWER_MILLISECONDS_MAX = 2_000
/** Beyond its own grace period, for what the launcher itself needs. */
const STOP_SECONDS_MAX = GRACE_SECONDS + 5
/** As shells count: the program could not be run, or a signal (its number is added) ended it. */
const EXIT_CODE_NOT_RUN = 127
const EXIT_CODE_SIGNAL = 128

export interface BrokerLaunch {
  readonly java: string
  readonly jars: string
  /** The broker's part of the data folder. */
  readonly folder: string
  readonly dataFolder: string
  readonly clusterId: string
  readonly port: number
  /** undefined: every process of this machine may do everything. */
  readonly users: BrokerUsers | undefined
}

export interface BrokerProcess {
  readonly pid: number
  /** Ends when the broker answers requests; fails if it ends before, or takes too long. */
  readonly ready: Effect.Effect<void, BrokerNotStarted>
  /** Ends with the broker, and says why that was. */
  readonly ended: Effect.Effect<BrokerNotStarted>
}

/** `detached` is a session of its own: signals to alk's process group don't reach the broker. */
const spawnLauncher = (launch: BrokerLaunch): ChildProcess => {
  const console = fs.openSync(join(launch.folder, brokerPaths.console), "w")
  try {
    const command = [launch.java, ...brokerArguments(launch.jars, launch.dataFolder)]
    return spawn("/bin/sh", [launcher, String(GRACE_SECONDS), ...command], {
      cwd: launch.folder,
      env: childEnvironment(),
      detached: true,
      stdio: ["pipe", "pipe", console]
    })
  } finally {
    fs.closeSync(console)
  }
}

/** The launcher's first line is the broker's process number. */
const announcedPid = (child: ChildProcess): Effect.Effect<number | undefined> =>
  Effect.callback((resume) => {
    if (child.stdout === null) return resume(Effect.succeed(undefined))
    const output = createInterface({ input: child.stdout })
    output.once("line", (line) => resume(Effect.succeed(Number(line))))
    output.once("close", () => resume(Effect.succeed(undefined)))
  })

const describeCluster = async ({ port, users }: BrokerLaunch) => {
  repairKafkajs()
  const admin = new Kafka({
    clientId: "alk-embedded",
    brokers: [`${LOOPBACK}:${port}`],
    logLevel: logLevel.NOTHING,
    connectionTimeout: ANSWER_MILLISECONDS_MAX,
    requestTimeout: ANSWER_MILLISECONDS_MAX,
    retry: { retries: 0 },
    ...(users === undefined ? {} : { sasl: signInOf(users, PROGRAM) })
  }).admin()
  try {
    await admin.connect()
    return await admin.describeCluster()
  } finally {
    await admin.disconnect()
  }
}

/**
 * True once a broker serves requests and may lead partitions. The cluster has to be the one that
 * was formatted here: another alk may have been faster on this port.
 */
const answers = (launch: BrokerLaunch): Effect.Effect<boolean> =>
  Effect.tryPromise(() => describeCluster(launch)).pipe(
    Effect.map((cluster) => cluster.clusterId === launch.clusterId && cluster.brokers.length > 0),
    Effect.orElseSucceed(() => false)
  )

const readiness = (
  launch: BrokerLaunch,
  ended: Effect.Effect<BrokerNotStarted>
): Effect.Effect<void, BrokerNotStarted> =>
  answers(launch).pipe(
    Effect.flatMap((ready) =>
      ready ? Effect.succeed(true) : Effect.delay(Effect.succeed(false), ANSWER_POLL_MILLISECONDS)
    ),
    Effect.repeat({ until: (ready) => ready }),
    Effect.asVoid,
    Effect.timeoutOrElse({
      duration: `${START_SECONDS_MAX} seconds`,
      orElse: () =>
        Effect.fail(brokerNotStarted("no_answer", launch.folder, `${START_SECONDS_MAX} s`))
    }),
    Effect.raceFirst(Effect.flatMap(ended, Effect.fail))
  )

/** The launcher and how it ended; closing its standard input ends it and the broker. */
const launched = Effect.fnUntraced(function* (launch: BrokerLaunch) {
  const exit = yield* Deferred.make<number>()
  const child = yield* Effect.acquireRelease(
    inFolder(launch.folder, () => {
      const child = spawnLauncher(launch)
      child.once("error", () => Deferred.doneUnsafe(exit, Effect.succeed(EXIT_CODE_NOT_RUN)))
      child.once("exit", (code, signal) => {
        const number = signal === null ? 0 : constants.signals[signal]
        Deferred.doneUnsafe(exit, Effect.succeed(code ?? EXIT_CODE_SIGNAL + number))
      })
      // A launcher that was killed breaks the pipe; its end is in `exit`.
      child.stdin?.on("error", () => child.stdin?.destroy())
      return child
    }),
    (child) =>
      Effect.sync(() => child.stdin?.end()).pipe(
        Effect.andThen(Deferred.await(exit)),
        Effect.timeoutOption(`${STOP_SECONDS_MAX} seconds`)
      )
  )
  return { child, exit: Deferred.await(exit) }
})

/** Starts the broker; the scope's end stops it, and waits for that. */
export const startBroker = Effect.fn("BrokerProcess.start")(function* (
  launch: BrokerLaunch
): Effect.fn.Return<BrokerProcess, BrokerNotStarted, Scope.Scope> {
  const { folder } = launch
  const controllerPort = yield* anyFreePort
  const properties = serverProperties(launch.port, controllerPort, launch.users)
  const positions = yield* inFolder(folder, () => {
    writeSettings(folder, brokerPaths.properties, properties)
    return logPositions(folder)
  })
  const { child, exit } = yield* launched(launch)
  const ended = Effect.map(exit, (code) => explainEnd(folder, loggedSince(folder, positions), code))
  const pid = yield* announcedPid(child)
  const identity = pid === undefined ? undefined : identityOf(pid)
  if (identity === undefined) return yield* Effect.flatMap(ended, Effect.fail)
  // By its number, so that it also ends if the launcher was killed.
  yield* Effect.addFinalizer(() => endProcess(identity))
  yield* inFolder(folder, () =>
    writeRecord(folder, {
      process: identity,
      dataFolder: launch.dataFolder,
      port: launch.port,
      since: new Date().toISOString()
    })
  )
  return { pid: identity.pid, ready: readiness(launch, ended), ended }
})
