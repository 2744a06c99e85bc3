/**
 * Makes the protobuf code of OTLP from the published definitions. Needs the development packages,
 * no network.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const repository = join(import.meta.dirname, "..", "..")
/** Where the import paths of the definitions start. */
const DEFINITIONS = "schemas"

const definitions = [
  "opentelemetry/proto/collector/logs/v1/logs_service.proto",
  "opentelemetry/proto/collector/metrics/v1/metrics_service.proto",
  "opentelemetry/proto/collector/trace/v1/trace_service.proto",
  "opentelemetry/proto/common/v1/common.proto",
  "opentelemetry/proto/logs/v1/logs.proto",
  "opentelemetry/proto/metrics/v1/metrics.proto",
  "opentelemetry/proto/resource/v1/resource.proto",
  "opentelemetry/proto/trace/v1/trace.proto",
  "google/rpc/error_details.proto",
  "google/rpc/status.proto"
]

/** JavaScript with declarations: Node can't strip the enums that TypeScript output has. */
const templateFor = (folder: string): string =>
  JSON.stringify({
    version: "v2",
    plugins: [
      {
        local: ["node", join("node_modules", "@bufbuild", "protoc-gen-es", "bin", "protoc-gen-es")],
        out: folder,
        opt: ["target=js+dts", "import_extension=js"]
      }
    ]
  })

/** Write the generated files into a folder that may exist; what else is in it stays. */
export const generateOtlp = (folder: string): void => {
  const cache = mkdtempSync(join(tmpdir(), "alk-buf-"))
  try {
    execFileSync(
      process.execPath,
      [
        join("node_modules", "@bufbuild", "buf", "bin", "buf"),
        "generate",
        DEFINITIONS,
        "--template",
        templateFor(folder),
        ...definitions.flatMap((path) => ["--path", join(DEFINITIONS, path)])
      ],
      { cwd: repository, env: { ...process.env, BUF_CACHE_DIR: cache }, stdio: "inherit" }
    )
  } finally {
    rmSync(cache, { recursive: true, force: true })
  }
}
