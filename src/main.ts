/**
 * alk: reads the configuration, starts the roles of this process, says where they are, and stops
 * them in order on a signal or when the npm that started it is gone.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit, Layer, References, type Runtime } from "effect"
import { parentGone } from "./adapters/embedded/ParentWatch.ts"
import { layerLogFormat } from "./cli/LogFormat.ts"
import { announce, failureLines, HELP, ROTATE_KEY_HELP } from "./cli/Messages.ts"
import { REPAIR_HELP } from "./cli/Repair.ts"
import { noteKeyConfusion } from "./cli/RuntimeNotice.ts"
import { VERIFY_HELP, verifyCommand } from "./cli/VerifyPack.ts"
import type { Config } from "./config/Config.ts"
import { loadConfig } from "./config/ParseConfig.ts"
import { repairPartition, rotateKey } from "./roles/Maintenance.ts"
import { startRoles } from "./roles/Roles.ts"
import { serveAsWorker } from "./roles/Worker.ts"

const say = (line: string): void => void process.stderr.write(`${line}\n`)

const levels = { debug: "Debug", info: "Info", warn: "Warn", error: "Error" } as const

const layerLogger = (config: Config) =>
  Layer.merge(
    layerLogFormat(config),
    Layer.succeed(References.MinimumLogLevel, levels[config.log.level])
  )

const serve = (config: Config) =>
  Effect.gen(function* () {
    yield* noteKeyConfusion()
    const endpoints = yield* startRoles(config, say)
    yield* announce(config, endpoints)
    yield* parentGone()
    yield* Effect.logInfo("npm is gone: stopping")
  }).pipe(Effect.scoped)

const print = (text: string) => Effect.sync(() => void process.stdout.write(text))

const helpOf: Readonly<Record<string, string>> = {
  repair: REPAIR_HELP,
  "rotate-key": ROTATE_KEY_HELP,
  verify: VERIFY_HELP
}

const program = Effect.gen(function* () {
  const [command, ...rest] = process.argv.slice(2)
  const wantsHelp = process.argv.includes("--help") || process.argv.includes("-h")
  if (wantsHelp) return yield* print(helpOf[command ?? ""] ?? HELP())
  if (command === "verify") return yield* verifyCommand(rest)
  const isWorker = command === "worker"
  if (command !== undefined && !isWorker && !(command in helpOf)) {
    return yield* Effect.fail(new Error(`unknown command ${command}; see npm start -- --help`))
  }
  const config = yield* loadConfig
  const logger = layerLogger(config)
  if (command === "repair") {
    return yield* repairPartition(config, rest, say).pipe(Effect.provide(logger))
  }
  if (isWorker) {
    return yield* serveAsWorker(config, say, rest).pipe(
      Effect.annotateLogs({ worker: Number(rest[0]) }),
      Effect.provide(logger)
    )
  }
  if (command === "rotate-key") return yield* rotateKey(config, say).pipe(Effect.provide(logger))
  return yield* serve(config).pipe(Effect.provide(logger))
}).pipe(
  Effect.catch((failure) =>
    Effect.sync(() => {
      for (const line of failureLines(failure)) say(line)
      process.exitCode = 1
    })
  )
)

/** A stop that was asked for is no failure: npm and service managers see 0. */
const teardown: Runtime.Teardown = (exit, onExit) =>
  onExit(
    Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? Number(process.exitCode ?? 0) : 1
  )

NodeRuntime.runMain(program, { teardown })
