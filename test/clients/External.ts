/**
 * What others make of the published document, with tools that are not from npm: a Python client that
 * `openapi-python-client` generates, and requests that `schemathesis` makes up. Starts the service on
 * loopback, keeps the tools in the cache folder, and ends with 1 if anything was found. Run by
 * `npm run test:clients`.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"

const TOOLS = ["openapi-python-client==0.29.1", "schemathesis==4.32.5"]
const DOCUMENT = resolve("schemas/openapi.json")
const KEY = testKey("clients")
/** Requests per operation that schemathesis makes up, beside its examples and its coverage. */
const EXAMPLES = process.env["EXAMPLES"] ?? "20"
/** A batch takes the items that are valid and says what is wrong with the others. */
const BATCHES = ["createEvents", "createTraces", "addTraceEvents"]
  .map(
    (id) =>
      `[[operations]]\ninclude-operation-id = "${id}"\n`
      + "[operations.checks.negative_data_rejection]\nenabled = false\n"
  )
  .join("")
/** A stream never ends, so no request for one does: its tests are in `test/http/Stream.test.ts`. */
const STREAMS = ["streamEvents", "streamExecution"]

const run = (
  program: string,
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {}
): boolean =>
  spawnSync(program, args, { stdio: "inherit", env: { ...process.env, ...environment } }).status
  === 0

/** The folder with the programs of the tools, installed if they are not there yet. */
const tools = (): string => {
  const name = TOOLS.join("-").replaceAll(/[^A-Za-z0-9.-]/g, "-")
  const folder = join(homedir(), ".cache", "alk", `clients-${name}`)
  const programs = join(folder, "bin")
  if (existsSync(join(programs, "schemathesis"))) return programs
  mkdirSync(folder, { recursive: true })
  const installed =
    run("python3", ["-m", "venv", folder])
    && run(join(programs, "pip"), ["install", "--quiet", ...TOOLS])
  if (installed) return programs
  rmSync(folder, { recursive: true, force: true })
  throw new Error(`can't install ${TOOLS.join(" and ")}`)
}

/** Generate, compile, and use the Python client. */
const python = (programs: string, { url }: Started): boolean => {
  const folder = freshFolder("python-client")
  const config = join(folder, "config.yml")
  writeFileSync(
    config,
    "content_type_overrides:\n"
      + ["application/zip", "application/pdf"]
        .map((type) => `  ${type}: application/octet-stream\n`)
        .join("")
      + ["application/x-ndjson", "application/yaml"]
        .map((type) => `  ${type}: text/plain\n`)
        .join("")
  )
  const path = `${programs}:${process.env["PATH"] ?? ""}`
  const generated = join(folder, "alk_client")
  const done =
    run(
      join(programs, "openapi-python-client"),
      ["generate", "--path", DOCUMENT, "--output-path", generated, "--meta", "none"].concat([
        "--config",
        config
      ]),
      { PATH: path }
    )
    && run(join(programs, "python"), ["-m", "compileall", "-q", generated])
    && run(join(programs, "python"), [resolve("test/clients/usage.py"), url, KEY], {
      PYTHONPATH: folder
    })
  rmSync(folder, { recursive: true, force: true })
  return done
}

const shareToken = async (url: string): Promise<string> => {
  const answer = await fetch(`${url}/v1/share/links`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: "{}"
  })
  const { token } = (await answer.json()) as { readonly token: string }
  return token
}

/** Valid and invalid requests of every operation, and what the document says of the answers. */
const schemathesis = async (programs: string, { url }: Started): Promise<boolean> => {
  const folder = freshFolder("schemathesis")
  const config = join(folder, "schemathesis.toml")
  const tokens = { api_key: KEY, admin_token: ADMIN_TOKEN, share_token: await shareToken(url) }
  writeFileSync(
    config,
    Object.entries(tokens)
      .map(([name, token]) => `[auth.openapi.${name}]\nbearer = "${token}"\n`)
      .concat(BATCHES)
      .join("")
  )
  return run(
    join(programs, "schemathesis"),
    ["--config-file", config, "run", DOCUMENT, "--url", url, "--max-examples", EXAMPLES].concat(
      ["--phases", "examples,coverage,fuzzing", "--continue-on-failure", "--seed", "1"],
      ["--exclude-checks", "positive_data_acceptance"],
      STREAMS.flatMap((id) => ["--exclude-operation-id", id])
    ),
    { SCHEMATHESIS_HOOKS: resolve("test/clients/schemathesis_hooks.py") }
  )
}

const programs = tools()
const data = freshFolder("clients")
const service = await start({
  ALK_DATA_DIR: data,
  ALK_ADMIN_TOKEN: ADMIN_TOKEN,
  ALK_BOOTSTRAP_KEYS: `${KEY}=clients:read+write`,
  ALK_QUOTA_FAILED_KEYS: "0",
  LOG_LEVEL: "warn"
})
try {
  const results = [python(programs, service), await schemathesis(programs, service)]
  process.exitCode = results.every(Boolean) ? 0 : 1
} finally {
  await service.stop()
  rmSync(data, { recursive: true, force: true })
}
