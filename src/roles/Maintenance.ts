/** The commands of an operator beside a service that runs, or on data that no process uses. */
import { Effect, Schema } from "effect"
import { biStatements } from "../adapters/clickhouse/sql/BiViews.ts"
import { DataFolder } from "../adapters/embedded/DataFolder.ts"
import { rotateSigningKey } from "../adapters/keys/SigningKey.ts"
import { acceptLoss, acceptRegistry } from "../cli/Repair.ts"
import type { Config } from "../config/Config.ts"
import { isTenantId } from "../domain/Identifiers.ts"
import { EventLog } from "../ports/EventLog.ts"
import { bootstrapOf, logOf, type Report, secretOf } from "./Log.ts"
import { SigningKeyMissing } from "./SigningKey.ts"
import { embedsBroker } from "./Topology.ts"

/** `alk rotate-key`: in the data folder that this configuration means, with nothing started. */
export const rotateKey = Effect.fnUntraced(function* (config: Config, report: Report) {
  if (config.signingKeyFile !== undefined) {
    return yield* new SigningKeyMissing({
      message:
        `rotate-key: ALK_SIGNING_KEY_FILE names ${config.signingKeyFile}; replace that file, `
        + "name the old one in ALK_SIGNING_KEY_PREVIOUS_FILE and start the processes that sign again"
    })
  }
  const folder = yield* DataFolder.open(config.dataDir)
  const { after, before } = yield* rotateSigningKey(config.serviceName, folder.path)
  report(
    `key ${after} signs from the next start on`
      + (before === undefined
        ? ""
        : `; ${before} endorses it then, and what it has signed until then stays verifiable`)
  )
}, Effect.scoped)

/** `alk repair`: on the log that this configuration means, with nothing else started. */
export const repairPartition = Effect.fnUntraced(function* (
  config: Config,
  args: ReadonlyArray<string>,
  report: Report
) {
  const folder = embedsBroker(config) ? yield* DataFolder.open(config.dataDir) : undefined
  const brokers = yield* bootstrapOf(config, folder, report)
  const secret = yield* secretOf(config, folder)
  const log = yield* logOf(config, brokers, secret)
  if (args[0] === "registry") {
    const { entries } = yield* acceptRegistry(args).pipe(Effect.provideService(EventLog, log))
    return report(`alk.registry is accepted as it is, with ${entries} entries`)
  }
  const { partition } = yield* acceptLoss(args).pipe(Effect.provideService(EventLog, log))
  report(
    `partition ${partition}: the next start goes on without what is lost, and logs what that is`
  )
}, Effect.scoped)

export class ViewsRefused extends Schema.TaggedError<ViewsRefused>()("ViewsRefused", {
  message: Schema.String
}) {}

/** What `alk views` prints: SQL for an administrator of the ClickHouse that this configuration names. */
export const viewsOfTenant = (
  { clickhouse, database }: Config,
  [tenantId = ""]: ReadonlyArray<string>
) => {
  if (clickhouse._tag === "Embedded") {
    return Effect.fail(
      new ViewsRefused({ message: "views: tools need a ClickHouse server: set CLICKHOUSE_URL" })
    )
  }
  if (!isTenantId(tenantId)) {
    return Effect.fail(new ViewsRefused({ message: "views: name a tenant, as in views acme" }))
  }
  const { cluster, user = "default" } = clickhouse
  const statements = biStatements({ cluster, database, user }, tenantId)
  return Effect.succeed(statements.map((statement) => `${statement};\n`).join("\n"))
}
