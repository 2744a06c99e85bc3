/**
 * The Kafka broker that alk brings along: fetched, formatted, started, restarted when it ends, and
 * stopped with the scope. To clients it is a bootstrap address.
 */
import {
  Context,
  Deferred,
  Effect,
  Layer,
  Schedule,
  type Scope,
  type Stream,
  SubscriptionRef
} from "effect"
import { RecordUnreadable } from "../../../domain/json/RecordFields.ts"
import { componentRuns } from "../../Components.ts"
import { setScramCredentials } from "../../kafka/protocol/ScramCredentials.ts"
import { DataFolder } from "../DataFolder.ts"
import { anyFreePort, freePortFrom, LOOPBACK, PORTS_TRIED_MAX } from "../FreePort.ts"
import { formatted } from "./BrokerFormat.ts"
import { type BrokerNotStarted, brokerNotStarted, inFolder } from "./BrokerNotStarted.ts"
import { type BrokerLaunch, startBroker } from "./BrokerProcess.ts"
import { endOrphan } from "./BrokerRecord.ts"
import {
  type BrokerUsers,
  brokerUsers,
  hasScram,
  PROGRAM,
  scramCredentials,
  signInOf,
  withScram
} from "./BrokerUsers.ts"
import { findJava, type JavaUnusable } from "./Java.ts"
import {
  KAFKA_VERSION,
  type KafkaJarsUnavailable,
  kafkaJars,
  type MavenMissing
} from "./KafkaJars.ts"

export type BrokerState =
  | { readonly _tag: "Starting" }
  | { readonly _tag: "Ready"; readonly pid: number }
  /** It ended by itself and is started again; requests fail meanwhile. */
  | { readonly _tag: "Restarting"; readonly reason: string; readonly attempt: number }

export interface EmbeddedBrokerOptions {
  /** The wanted port; the next free one is taken if it is not free. */
  readonly port: number
  /** Every process of this machine may read and write every topic. */
  readonly isOpen: boolean
  readonly cacheDir: string
  /** Gets a line for a person now and then while something takes long. */
  readonly report: (line: string) => void
}

export type EmbeddedBrokerError =
  | BrokerNotStarted
  | JavaUnusable
  | KafkaJarsUnavailable
  | MavenMissing

const RESTART_MILLISECONDS_MIN = 250
const RESTART_MILLISECONDS_MAX = 10_000
/** A broker that answered this long was well: the next restart is quick again. */
const WELL_MILLISECONDS = 60_000
/** Other starters may take a port between the look and the bind. */
const PORT_ATTEMPTS_MAX = 10
/** How long a lock on the log may be held by a broker that is just ending. */
const LOCK_SECONDS_MAX = 30
/** Time between two lines that say that the start goes on. */
const SLOW_SECONDS = 10

/**
 * From one start to the next end, which is explained; `onReady` runs in between. A defect counts as
 * an end too, so that no mistake in here can leave alk without a broker.
 */
const life = (
  launch: BrokerLaunch,
  onReady: (pid: number) => Effect.Effect<void>
): Effect.Effect<BrokerNotStarted> =>
  Effect.gen(function* () {
    const broker = yield* startBroker(launch)
    yield* broker.ready
    yield* onReady(broker.pid)
    return yield* broker.ended
  }).pipe(
    Effect.scoped,
    Effect.catch((notStarted) => Effect.succeed(notStarted)),
    Effect.catchDefect((defect) =>
      Effect.succeed(brokerNotStarted("ended", launch.folder, String(defect)))
    )
  )

const restartDelay = (attempt: number): number =>
  Math.min(RESTART_MILLISECONDS_MIN * 2 ** (attempt - 1), RESTART_MILLISECONDS_MAX)

/** Keeps the broker running; gives up only if it never was ready, by failing `first`. */
const supervise = Effect.fnUntraced(function* (
  launch: BrokerLaunch,
  state: SubscriptionRef.SubscriptionRef<BrokerState>,
  first: Deferred.Deferred<void, BrokerNotStarted>
) {
  for (let attempt = 1; ; attempt++) {
    let readySince = Infinity
    const end = yield* life(
      launch,
      Effect.fnUntraced(function* (pid) {
        readySince = Date.now()
        yield* SubscriptionRef.set(state, { _tag: "Ready", pid })
        const isFirst = yield* Deferred.succeed(first, undefined)
        if (!isFirst) yield* Effect.logInfo("The embedded Kafka broker answers again")
      })
    )
    if (yield* Deferred.fail(first, end)) return
    if (Date.now() - readySince > WELL_MILLISECONDS) attempt = 1
    const delay = restartDelay(attempt)
    yield* SubscriptionRef.set(state, { _tag: "Restarting", reason: end.message, attempt })
    yield* Effect.logWarning(`${end.message}. It is started again in ${delay} ms`)
    yield* Effect.sleep(delay)
  }
})

const remind = (report: (line: string) => void): Effect.Effect<never> =>
  Effect.sleep(`${SLOW_SECONDS} seconds`).pipe(
    Effect.andThen(Effect.sync(() => report("The embedded Kafka broker is still starting"))),
    Effect.forever
  )

/** Starts under supervision and waits until the broker answers. */
const startSupervised = Effect.fnUntraced(function* (
  launch: BrokerLaunch,
  state: SubscriptionRef.SubscriptionRef<BrokerState>,
  report: (line: string) => void
) {
  const first = yield* Deferred.make<void, BrokerNotStarted>()
  yield* Effect.forkScoped(supervise(launch, state, first))
  yield* Effect.raceFirst(Deferred.await(first), remind(report))
  yield* componentRuns("kafka", KAFKA_VERSION)
})

const keptUsers = (folder: string): Effect.Effect<BrokerUsers, BrokerNotStarted> =>
  Effect.try({
    try: () => brokerUsers(folder),
    catch: (cause) =>
      brokerNotStarted(
        cause instanceof RecordUnreadable ? "damaged" : "not_writable",
        folder,
        String(cause)
      )
  })

/**
 * Starts the broker of an earlier version once as it was made, on a port that is not published, and
 * lets its log keep what SCRAM asks for.
 */
const upgradedUsers = Effect.fn("EmbeddedBroker.upgradeUsers")(function* (
  launch: Omit<BrokerLaunch, "port"> & { readonly users: BrokerUsers },
  report: (line: string) => void
) {
  report("The embedded Kafka broker is started once to change how its users sign in")
  const { folder, users } = launch
  const port = yield* anyFreePort
  const broker = yield* startBroker({ ...launch, port })
  yield* broker.ready
  const settings = {
    brokers: [`${LOOPBACK}:${port}`],
    clientId: "alk-embedded",
    sasl: signInOf(users, PROGRAM),
    log: () => {}
  }
  yield* Effect.tryPromise(() => setScramCredentials(settings, scramCredentials(users))).pipe(
    Effect.mapError(({ cause }) => brokerNotStarted("no_answer", folder, `SCRAM: ${String(cause)}`))
  )
  return yield* inFolder(folder, () => withScram(folder, users))
}, Effect.scoped)

const make = Effect.fn("EmbeddedBroker.make")(function* ({
  port: wanted,
  cacheDir,
  isOpen,
  report
}: EmbeddedBrokerOptions): Effect.fn.Return<
  EmbeddedBroker["Service"],
  EmbeddedBrokerError,
  DataFolder | Scope.Scope
> {
  const { path: dataFolder, kafka: folder } = yield* DataFolder
  const java = yield* findJava
  const jars = yield* kafkaJars(cacheDir, report)
  yield* endOrphan(folder, dataFolder, report)
  const { clusterId, users: formattedUsers } = yield* formatted(
    folder,
    java,
    jars,
    isOpen ? undefined : yield* keptUsers(folder)
  )
  const users =
    formattedUsers === undefined || hasScram(formattedUsers)
      ? formattedUsers
      : yield* upgradedUsers(
          { java, jars, folder, dataFolder, clusterId, users: formattedUsers },
          report
        )
  const state = yield* SubscriptionRef.make<BrokerState>({ _tag: "Starting" })

  const startOnFreePort = Effect.gen(function* () {
    const port = yield* freePortFrom(wanted)
    if (port === undefined) {
      return yield* brokerNotStarted(
        "port_taken",
        folder,
        `${wanted} and the next ${PORTS_TRIED_MAX - 1}`
      )
    }
    const launch = { java, jars, folder, dataFolder, clusterId, port, users }
    yield* startSupervised(launch, state, report)
    return port
  })
  const port = yield* startOnFreePort.pipe(
    Effect.retry({ while: ({ reason }) => reason === "port_taken", times: PORT_ATTEMPTS_MAX }),
    Effect.retry({
      while: ({ reason }) => reason === "folder_locked",
      schedule: Schedule.spaced("1 second").pipe(Schedule.upTo({ times: LOCK_SECONDS_MAX }))
    })
  )
  return {
    bootstrap: `${LOOPBACK}:${port}`,
    users,
    state: SubscriptionRef.get(state),
    changes: SubscriptionRef.changes(state)
  }
})

export class EmbeddedBroker extends Context.Service<
  EmbeddedBroker,
  {
    /** host:port, for clients on this machine; the same for the life of the process. */
    readonly bootstrap: string
    /** Who may sign in; undefined if every client may do everything. */
    readonly users: BrokerUsers | undefined
    readonly state: Effect.Effect<BrokerState>
    /** The state now and each one that follows. */
    readonly changes: Stream.Stream<BrokerState>
  }
>()("alk/adapters/embedded/EmbeddedBroker") {
  /** Ready when the broker answers; the scope's end stops it and waits for its clean end. */
  static readonly layer = (
    options: EmbeddedBrokerOptions
  ): Layer.Layer<EmbeddedBroker, EmbeddedBrokerError, DataFolder> =>
    Layer.effect(EmbeddedBroker, make(options))
}
