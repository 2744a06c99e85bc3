/**
 * alk: reads the configuration, starts the roles of this process, says where they are, and stops
 * them in order on a signal or when the npm that started it is gone.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit, Layer, References, type Runtime } from "effect"
import { parentGone } from "./adapters/embedded/ParentWatch.ts"
import { BACKUP_HELP, backupArguments } from "./cli/Backup.ts"
import { DOCTOR_HELP } from "./cli/Findings.ts"
import { FORGET_HELP, forgetArguments } from "./cli/Forget.ts"
import { layerLogFormat } from "./cli/LogFormat.ts"
import { announce, failureLines, HELP, ROTATE_KEY_HELP, VIEWS_HELP } from "./cli/Messages.ts"
import { REBUILD_HELP, rebuildArguments } from "./cli/RebuildView.ts"
import { REPAIR_HELP } from "./cli/Repair.ts"
import { RESTORE_HELP, restoreArguments } from "./cli/Restore.ts"
import { noteKeyConfusion } from "./cli/RuntimeNotice.ts"
import { VERIFY_HELP, verifyCommand } from "./cli/VerifyPack.ts"
import type { Config } from "./config/Config.ts"
import { loadConfig } from "./config/ParseConfig.ts"
import { backup } from "./roles/Backup.ts"
import { examine } from "./roles/Doctor.ts"
import { forget } from "./roles/Forget.ts"
import { repairPartition, rotateKey, viewsOfTenant } from "./roles/Maintenance.ts"
import { rebuildView } from "./roles/RebuildView.ts"
import { restore } from "./roles/Restore.ts"
import { startRoles } from "./roles/Roles.ts"
import { noteSecrets } from "./roles/SecretNotices.ts"
import { layerTracing } from "./roles/Tracing.ts"
import { serveAsWorker } from "./roles/Worker.ts"

const say = (line: string): void => void process.stderr.write(`${line}\n`)

const levels = { debug: "Debug", info: "Info", warn: "Warn", error: "Error" } as const

const layerLogger = (config: Config) =>
  Layer.mergeAll(
    layerLogFormat(config),
    layerTracing({
      endpoint: process.env["OTEL_EXPORTER_OTLP_ENDPOINT"],
      serviceName: config.serviceName
    }),
    Layer.succeed(References.MinimumLogLevel, levels[config.log.level])
  )

const serve = (config: Config) =>
  Effect.gen(function* () {
    yield* noteKeyConfusion()
    yield* noteSecrets(config)
    const endpoints = yield* startRoles(config, say)
    yield* announce(config, endpoints)
    yield* parentGone()
    yield* Effect.logInfo("npm is gone: stopping")
  }).pipe(Effect.scoped)

const print = (text: string) => Effect.sync(() => void process.stdout.write(text))

const helpOf: Readonly<Record<string, string>> = {
  backup: BACKUP_HELP,
  doctor: DOCTOR_HELP,
  forget: FORGET_HELP,
  "rebuild-view": REBUILD_HELP,
  repair: REPAIR_HELP,
  restore: RESTORE_HELP,
  "rotate-key": ROTATE_KEY_HELP,
  verify: VERIFY_HELP,
  views: VIEWS_HELP
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
  if (command === "doctor") {
    const isHealthy = yield* examine(config, (text) => void process.stdout.write(text))
    process.exitCode = isHealthy ? 0 : 1
    return
  }
  if (command === "views") return yield* Effect.flatMap(viewsOfTenant(config, rest), print)
  const logger = layerLogger(config)
  if (command === "backup") {
    const asked = yield* Effect.try({ try: () => backupArguments(rest), catch: (error) => error })
    return yield* backup(config, asked, (text) => void process.stdout.write(text)).pipe(
      Effect.provide(logger)
    )
  }
  if (command === "rebuild-view") {
    const asked = yield* Effect.try({ try: () => rebuildArguments(rest), catch: (error) => error })
    const rebuild = rebuildView(config, asked, (text) => void process.stdout.write(text))
    return yield* rebuild.pipe(Effect.provide(logger))
  }
  if (command === "forget") {
    const asked = yield* Effect.try({ try: () => forgetArguments(rest), catch: (error) => error })
    return yield* forget(config, asked, (text) => void process.stdout.write(text)).pipe(
      Effect.provide(logger)
    )
  }
  if (command === "restore") {
    const asked = yield* Effect.try({ try: () => restoreArguments(rest), catch: (error) => error })
    const holds = yield* restore(
      config,
      asked,
      (text) => void process.stdout.write(text),
      asked.quiet ? () => {} : say
    ).pipe(Effect.provide(logger))
    process.exitCode = holds ? 0 : 1
    return
  }
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
