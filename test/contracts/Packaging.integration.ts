/**
 * The production packaging, as far as it can be judged without a container engine: the image holds
 * what the program needs and no more, and every service has a configuration that the program takes.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { Result } from "effect"
import { assert, describe, it } from "vitest"
import { serverProperties } from "../../src/adapters/embedded/broker/BrokerSettings.ts"
import { KAFKA_VERSION } from "../../src/adapters/embedded/broker/KafkaJars.ts"
import type { Config } from "../../src/config/Config.ts"
import { configHelp } from "../../src/config/ConfigHelp.ts"
import { parseConfig } from "../../src/config/ParseConfig.ts"
import { MESSAGE_BYTES_MAX } from "../../src/domain/records/Topics.ts"
import {
  COMPOSE_FILE,
  EXAMPLE_FILE,
  ownServices,
  readCompose,
  references,
  type Service
} from "../containers/Compose.ts"
import { START_COMMAND } from "../support/Program.ts"

const read = (path: string): string => readFileSync(path, "utf8")
const dockerfile = read("docker/Dockerfile")
const manifest = JSON.parse(read("package.json")) as {
  readonly dependencies: Readonly<Record<string, string>>
  readonly license: string
}

const filled = {
  ALK_SECRET: "0123456789abcdef0123456789abcdef",
  CLICKHOUSE_PASSWORD: "a password",
  ALK_ADMIN_TOKEN: "an admin token of the tests".replaceAll(" ", "-")
}
const compose = readCompose(filled)
const own = ownServices(compose)

const configOf = (environment: Readonly<Record<string, string>>): Config =>
  Result.getOrThrow(
    parseConfig(
      { HOST: "0.0.0.0", PORT: "8080", ALK_DATA_DIR: "/data", ...environment },
      {
        workingDirectory: "/alk",
        homeDirectory: "/home/node",
        terminal: false,
        cores: 2,
        platform: "linux"
      }
    )
  )

const hostPorts = ({ ports = [] }: Service): ReadonlyArray<string> =>
  ports.map((port) => port.split(":").slice(0, -1).join(":"))

describe("the compose file", () => {
  it("gives every alk service an environment that the program takes, name by name", () => {
    const names = configHelp().matchAll(/^ {2}([A-Z][A-Z0-9_]+)/gm)
    const known = new Set([...names].map(([, name]) => name))
    assert.isTrue(known.has("ALK_SECRET"))
    for (const [name, { environment }] of own) {
      for (const variable of Object.keys(environment)) {
        assert.isTrue(known.has(variable), `${name}: ${variable}`)
      }
      const config = configOf(environment)
      assert.strictEqual(config.kafka._tag, "External", name)
      assert.strictEqual(config.clickhouse._tag, "External", name)
      assert.strictEqual(config.topics.replication, 1, name)
    }
  })

  it("runs two api, two sequencers and one projection, alike but for the role", () => {
    const roles = own.map(([, { environment }]) => environment["ALK_ROLES"]!)
    assert.deepStrictEqual(roles, ["api", "api", "sequencer", "sequencer", "projection"])
    const rest = own.map(
      ([
        ,
        {
          environment: { ALK_ROLES: _role, ...others }
        }
      ]) => others
    )
    for (const others of rest) assert.deepStrictEqual(others, rest[0])
  })

  it("reaches the brokers and the store by the names and users that they have", () => {
    const { clickhouse, kafka } = compose.services
    const [[, { environment }]] = own as [[string, Service]]
    const store = new URL(environment["CLICKHOUSE_URL"]!)
    assert.strictEqual(store.hostname, clickhouse!.hostname)
    assert.strictEqual(environment["CLICKHOUSE_USER"], clickhouse!.environment["CLICKHOUSE_USER"])
    assert.strictEqual(
      environment["CLICKHOUSE_PASSWORD"],
      clickhouse!.environment["CLICKHOUSE_PASSWORD"]
    )
    assert.include(
      kafka!.environment["KAFKA_ADVERTISED_LISTENERS"]!,
      `INTERNAL://${environment["KAFKA_BROKERS"]}`
    )
    assert.match(environment["KAFKA_BROKERS"]!, new RegExp(`^${kafka!.hostname}:`))
  })

  it("starts nothing before what it depends on is healthy, and restarts what ends", () => {
    for (const [name, service] of Object.entries(compose.services)) {
      assert.strictEqual(service.restart, "unless-stopped", name)
      for (const [needed, { condition }] of Object.entries(service.depends_on ?? {})) {
        assert.strictEqual(condition, "service_healthy")
        assert.isNotEmpty(compose.services[needed]?.healthcheck?.test, `${name} needs ${needed}`)
      }
    }
    for (const [name, { depends_on }] of own) {
      assert.hasAllKeys(depends_on, ["kafka", "clickhouse"], name)
    }
  })

  it("lets the image ask every role for its health, on the port where it listens", () => {
    const dockerfile = readFileSync("docker/Dockerfile", "utf8")
    const [port] = /(?<=\bPORT=)\d+/.exec(dockerfile) ?? []
    assert.include(dockerfile, `ALK_WORKER_PORT=${port}`)
    assert.match(dockerfile, /HEALTHCHECK[^]*process\.env\.PORT\}\/healthz/)
    for (const [name, { environment, healthcheck }] of own) {
      assert.isUndefined(healthcheck, name)
      assert.isUndefined(environment["ALK_WORKER_PORT"], name)
    }
  })

  it("keeps data in volumes, opens ports on loopback only and none twice", () => {
    const volumes = Object.values(compose.services).flatMap((service) => service.volumes ?? [])
    const names = new Set(volumes.map((volume) => volume.split(":")[0]!))
    assert.sameMembers([...names], Object.keys(compose.volumes))
    const ports = Object.values(compose.services).flatMap(hostPorts)
    assert.strictEqual(new Set(ports).size, ports.length)
    for (const port of ports) assert.match(port, /^127\.0\.0\.1:\d+$/)
  })

  it("has one folder of exports for all processes with the API", () => {
    const apis = own.filter(([, { environment }]) => environment["ALK_ROLES"] === "api")
    assert.isAbove(apis.length, 1)
    for (const [name, { volumes = [] }] of apis) {
      assert.deepStrictEqual(volumes, ["exports:/data"], name)
    }
  })

  it("holds no secret: each comes from .env, which the example names and leaves empty", () => {
    const example = new Map(
      read(EXAMPLE_FILE)
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("#"))
        .map((line) => line.split("=") as [string, string])
    )
    assert.sameMembers([...example.keys()], [...references().keys()])
    for (const [name, value] of example) assert.strictEqual(value, "", name)
    const secrets = /(?:SECRET|PASSWORD|TOKEN|KEYS):/
    for (const line of read(COMPOSE_FILE)
      .split("\n")
      .filter((text) => secrets.test(text))) {
      assert.match(line, /: \$\{[A-Z_]+:(?:\?[^}]+|-)\}$/)
    }
    for (const name of Object.keys(filled)) {
      assert.isTrue(references().get(name), `${name} is required`)
      assert.throws(() => readCompose({ ...filled, [name]: "" }), name)
    }
    assert.include(read(".dockerignore").split("\n"), "*")
  })

  it("pins its images, the broker's to the version that is embedded", () => {
    const { clickhouse, kafka } = compose.services
    assert.strictEqual(kafka!.image, `apache/kafka:${KAFKA_VERSION}`)
    assert.match(clickhouse!.image, /^clickhouse\/clickhouse-server:26\.\d+$/)
  })

  it("tells its broker what the embedded one is told", () => {
    const embedded = new Map(
      serverProperties(9_092, 9_093, undefined)
        .trim()
        .split("\n")
        .map((line) => line.split("=") as [string, string])
    )
    const { environment } = compose.services["kafka"]!
    const property = (name: string): string =>
      name
        .replace(/^KAFKA_/, "")
        .toLowerCase()
        .replaceAll("_", ".")
    const told = new Map(
      Object.entries(environment).map(([name, value]) => [property(name), value])
    )
    assert.strictEqual(told.get("message.max.bytes"), String(MESSAGE_BYTES_MAX))
    for (const name of [
      "process.roles",
      "node.id",
      "auto.create.topics.enable",
      "default.replication.factor",
      "min.insync.replicas",
      "message.max.bytes",
      "replica.fetch.max.bytes",
      "group.initial.rebalance.delay.ms",
      "offsets.topic.replication.factor",
      "transaction.state.log.replication.factor",
      "transaction.state.log.min.isr",
      "transaction.max.timeout.ms",
      "transactional.id.expiration.ms",
      "share.coordinator.state.topic.replication.factor",
      "share.coordinator.state.topic.min.isr"
    ]) {
      assert.isDefined(embedded.get(name), name)
      assert.strictEqual(told.get(name), embedded.get(name), name)
    }
    const listeners = told
      .get("listeners")!
      .split(",")
      .map((listener) => listener.split(":")[0])
    const protocols = told.get("listener.security.protocol.map")!.split(",")
    assert.sameMembers(
      protocols.map((entry) => entry.split(":")[0]),
      listeners
    )
  })
})

/** The arguments of an instruction in its JSON form. */
const execForm = (instruction: string): ReadonlyArray<string> => {
  const [, json] = new RegExp(`^\\s*${instruction}\\s+(\\[.*\\])$`, "m").exec(dockerfile) ?? []
  return JSON.parse(json ?? "null") as ReadonlyArray<string>
}

/** Run the image's health check against a port; its exit code. */
const healthOf = async (port: number): Promise<number> => {
  const [, ...rest] = execForm("CMD")
  const child = spawn(process.execPath, rest, {
    env: { PORT: String(port) },
    stdio: "ignore"
  })
  const [code] = (await once(child, "exit")) as [number]
  return code
}

const listen = async (status: number): Promise<Server> => {
  const server = createServer((request, response) => {
    response.statusCode = request.url === "/healthz" ? status : 404
    response.end()
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return server
}

describe("the image", () => {
  it("runs node as process 1 on the source, with the Node version of the package", () => {
    const [, ...flags] = START_COMMAND
    assert.include(flags, "src/main.ts")
    assert.deepStrictEqual(execForm("ENTRYPOINT"), ["node", ...flags])
    assert.isTrue(existsSync("src/main.ts"))
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image)
    assert.isNotEmpty(bases)
    for (const base of bases) {
      assert.strictEqual(base, `node:${manifest.dependencies["node"]}-bookworm-slim`)
    }
  })

  it("runs as a user without rights, and without development packages", () => {
    assert.match(dockerfile, /^USER node$/m)
    assert.isBelow(dockerfile.lastIndexOf("\nRUN "), dockerfile.indexOf("\nUSER node"))
    assert.match(dockerfile, /npm ci --omit=dev/)
  })

  it("copies only what exists and what the build is allowed to see", () => {
    const ignore = read(".dockerignore").split("\n")
    const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.+)$/gm)].flatMap(([, paths]) =>
      paths!.split(" ").slice(0, -1)
    )
    assert.includeMembers(sources, ["src", "schemas", "package-lock.json", "LICENSE"])
    for (const source of sources) {
      assert.isTrue(existsSync(source), source)
      assert.include(ignore, `!${source}`)
    }
    const allowed = ignore.filter((line) => line.startsWith("!")).map((line) => line.slice(1))
    assert.sameMembers(allowed, [...new Set(sources), "docker/Dockerfile"])
  })

  it("bakes in settings that the program takes, and no secret", () => {
    const [, block] = /^ENV ((?:.*\\\n)*.*)$/m.exec(dockerfile) ?? []
    const entries = block!.replaceAll("\\\n", " ").trim().split(/\s+/)
    const settings = entries.map((entry) => entry.split("="))
    const environment = Object.fromEntries(settings) as Record<string, string>
    assert.notMatch(Object.keys(environment).join(), /SECRET|PASSWORD|TOKEN|KEY/)
    assert.notMatch(dockerfile, /^ARG /m)
    const config = configOf({ ...environment, ...own[0]![1].environment })
    assert.strictEqual(config.http.host, "0.0.0.0")
    assert.strictEqual(config.http.port, 8080)
  })

  it("is healthy only while /healthz answers 200", async () => {
    const well = await listen(200)
    const ill = await listen(503)
    const portOf = (server: Server): number => (server.address() as AddressInfo).port
    const closed = portOf(well)
    try {
      assert.strictEqual(await healthOf(portOf(well)), 0)
      assert.strictEqual(await healthOf(portOf(ill)), 1)
    } finally {
      well.close()
      ill.close()
    }
    assert.strictEqual(await healthOf(closed), 1)
  })

  it("ships the license that the package names", () => {
    assert.strictEqual(manifest.license, "Apache-2.0")
    assert.match(read("LICENSE"), /^\s*Apache License\n\s*Version 2\.0, January 2004\n/)
  })
})
