/**
 * The part of the configuration that the HTTP API works with, as one service: limits, secret,
 * addresses. Reads no environment.
 */
import { Context, Layer, type Redacted } from "effect"
import type { Config, RequestLog } from "../../config/Config.ts"

/** What the HTTP API takes from the configuration. */
export interface Settings {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** Other processes of this installation listen on the same port. */
  readonly sharesPort?: boolean
  /** Of OTLP over gRPC; undefined is off, 0 takes any free port. */
  readonly otlpGrpcPort?: number | undefined
  /** Browsers get the console. */
  readonly hasConsole: boolean
  /** Without a trailing slash; undefined: links are relative, or lead to the own address. */
  readonly publicUrl: string | undefined
  /** Empty: CORS is off. */
  readonly corsOrigins: ReadonlyArray<string>
  /** Plain events are prepared in WebAssembly. */
  readonly fastAccept: boolean
  /** Actions may have any printable name, unless a request says otherwise. */
  readonly anyAction: boolean
  readonly limits: Pick<
    Config["limits"],
    | "bodyBytesMax"
    | "bodyBudgetBytes"
    | "eventBytesMax"
    | "metadataBytesMax"
    | "payloadBytesMax"
    | "actionLengthMax"
  >
  /** Open streams of one tenant. */
  readonly streamsPerTenantMax: number
  /** Per tenant; undefined is off. */
  readonly eventsPerSecondMax: number | undefined
  readonly exportsAtOnceMax: number | undefined
  /** Wrong keys of one client address; 0 is off. */
  readonly failedKeysPerMinuteMax: number
  /** `ALK_SECRET`: makes receipt ids recognisable to every process. */
  readonly secret: Redacted.Redacted
  readonly serviceName: string
  /** Which requests have a line in the log. */
  readonly requestLog: RequestLog
  /** How long the public topics keep what is erased elsewhere. */
  readonly topicRetentionMs: number | "forever"
}

/** The settings of this process's API. */
export class ApiSettings extends Context.Service<ApiSettings, Settings>()("alk/http/ApiSettings") {
  /** `secret` apart, since it may have been made at the first start. */
  static readonly fromConfig = (config: Config, secret: Redacted.Redacted) =>
    Layer.succeed(ApiSettings, {
      host: config.http.host,
      port: config.http.port,
      sharesPort: config.http.sharesPort,
      otlpGrpcPort: config.http.otlpGrpcPort,
      hasConsole: config.http.hasConsole,
      publicUrl: config.http.publicUrl,
      corsOrigins: config.http.corsOrigins,
      fastAccept: config.fastAccept,
      anyAction: config.anyAction,
      limits: config.limits,
      streamsPerTenantMax: config.limits.streamsPerTenantMax,
      eventsPerSecondMax: config.quotas.eventsPerSecond,
      exportsAtOnceMax: config.quotas.exportsAtOnce,
      failedKeysPerMinuteMax: config.quotas.failedKeysPerMinute,
      secret,
      serviceName: config.serviceName,
      requestLog: config.log.requests,
      topicRetentionMs: config.topics.eventsRetentionMs
    })
}
