/** The generated protobuf code is what the generator makes of the published definitions. */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { generatedFiles } from "../../../../src/tools/GeneratedFiles.ts"

/** opentelemetry-proto 1.10.0 and proto-google-common-protos 2.61.0, as released. */
const released: Readonly<Record<string, string>> = {
  "opentelemetry/proto/collector/logs/v1/logs_service.proto":
    "0252687fc8f59d139ced709d383e83678e9bd4957bdbe76077242f1c32363fa5",
  "opentelemetry/proto/collector/metrics/v1/metrics_service.proto":
    "2bb3c6adee5f7609c8a32c5e4b1ec57057320015e298e9cf136699a42abc24d7",
  "opentelemetry/proto/collector/trace/v1/trace_service.proto":
    "03c8cc4e3e101087d884392d6eda32152ad5cd696e6344f50deaa59804a75c7a",
  "opentelemetry/proto/common/v1/common.proto":
    "833db934b8b08be193940aa412f26a9ed8c564dfa8ea3517dc583f5064142731",
  "opentelemetry/proto/logs/v1/logs.proto":
    "6b2e1eba0c01ae2da47927c63eabfaf3f151ee7ad846f2cdf3b2b71fb61004fe",
  "opentelemetry/proto/metrics/v1/metrics.proto":
    "d0a53dda45ad100edbf25675f5b339ce8bf689bdc51816f8cf19b0d51464e1a4",
  "opentelemetry/proto/resource/v1/resource.proto":
    "e0a7cdc0ffcfeffaa2606e8611839735ebffaa2d6acdf33e9356f2c48ae692d3",
  "opentelemetry/proto/trace/v1/trace.proto":
    "c3fb1385c90b8bc08a2a462e28b5d0c422c7b524a839f75f75e3cd9f64f36956",
  "google/rpc/error_details.proto":
    "da3f5ac1304abfd6ab2f959b4ac3e6cb0758b52fca388c226bf3b92af95e07ed",
  "google/rpc/status.proto": "3b5c712455570ac4342dd3c521c4c11011652ae9a0fbca75ba22fcc45c6e1991"
}

describe("the protobuf code of OTLP", () => {
  it("is, like every generated file, what the generator makes: else run npm run generate", () => {
    const files = [...generatedFiles()]
    const code = files.filter(([path]) => path.startsWith("src/services/ingest/otlp/gen/"))
    assert.strictEqual(code.length, 20)
    for (const [path, content] of files)
      assert.strictEqual(readFileSync(path, "utf8"), content, path)
  })

  it("comes from the definitions as they were released", () => {
    for (const [path, sum] of Object.entries(released)) {
      const content = readFileSync(join("schemas", path))
      assert.strictEqual(createHash("sha256").update(content).digest("hex"), sum, path)
      assert.include(content.toString(), "Licensed under the Apache License, Version 2.0")
    }
  })
})
