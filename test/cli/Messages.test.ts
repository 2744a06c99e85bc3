/** What the program says of itself when it has started. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Result } from "effect"
import { announce } from "../../src/cli/Messages.ts"
import { parseConfig } from "../../src/config/ParseConfig.ts"
import { type LogLine, loggerTo } from "../http/support/TestApi.ts"

const config = Result.getOrThrow(
  parseConfig(
    { ALK_LOG_FORMAT: "json" },
    {
      workingDirectory: "/srv",
      homeDirectory: "/home/you",
      terminal: false,
      cores: 2,
      platform: "linux"
    }
  )
)

describe("the line for machines", () => {
  it.effect("says where the program is reached, and nothing else that its parts know", () =>
    Effect.gen(function* () {
      const logs: Array<LogLine> = []
      const started = {
        url: "http://127.0.0.1:8080",
        otlpGrpc: "http://127.0.0.1:4317",
        subscriberFile: "/data/subscriber.properties",
        kafka: "127.0.0.1:9092",
        store: undefined,
        firstKey: undefined,
        signInCode: undefined,
        stopServing: Effect.void
      }
      yield* announce(config, started).pipe(Effect.provide(Logger.layer([loggerTo(logs)])))
      const { kafka, otlpGrpc, store, subscriberFile, url } = started
      const annotations = {
        kafka,
        subscriber_file: subscriberFile,
        store,
        url,
        otlp_grpc: otlpGrpc,
        roles: config.roles
      }
      assert.deepStrictEqual(
        logs.map((line) => ({ message: line.message, annotations: line.annotations })),
        [{ message: "ready", annotations }]
      )
    })
  )
})
