/**
 * The Helm chart, rendered as `helm template` does by Helm's own library (Go): what it says to start is
 * what the program takes, every role has its probes, limits and disruption budget, and values that are
 * missing are named.
 */
import { execFile } from "node:child_process"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { parseAllDocuments, stringify } from "yaml"
import { fileNameOf, secretNames } from "../../src/config/SecretFiles.ts"
import { variables } from "../../src/config/Variables.ts"
import type { Json } from "../support/Client.ts"
import { freshFolder } from "../support/Program.ts"

const run = promisify(execFile)
const folder = freshFolder("helm")
const program = join(folder, "render")
const ROLES = ["api", "sequencer", "projection"] as const

const values = {
  image: { repository: "registry.example.com/alk" },
  kafka: {
    brokers: ["kafka-0:9092", "kafka-1:9092", "kafka-2:9092"],
    tls: { enabled: true, existingSecret: "kafka-tls", mutual: true }
  },
  clickhouse: { url: "https://clickhouse:8443", cluster: "main" },
  existingSecret: "alk",
  signingKeySecret: "alk-signing-key",
  publicUrl: "https://audit.example.com",
  env: { ALK_ORGANISATION_OF_NOBODY: "x" },
  exports: { enabled: true, storageClassName: "nfs" },
  ingress: { enabled: true, host: "audit.example.com", tlsSecret: "tls" }
}

const render = async (given: Json): Promise<ReadonlyArray<Json>> => {
  const file = join(folder, "values.yaml")
  writeFileSync(file, stringify(given))
  const { stdout } = await run(program, ["docker/helm/alk", file])
  return parseAllDocuments(stdout)
    .map((document) => {
      assert.deepStrictEqual(document.errors, [])
      return document.toJS() as Json | null
    })
    .filter((document) => document !== null)
}

const refusalOf = async (given: Json): Promise<string> =>
  render(given).then(
    () => "",
    ({ stderr }) => String(stderr)
  )

const of = (all: ReadonlyArray<Json>, kind: string, name: string): Json => {
  const found = all.filter((one) => one["kind"] === kind && one["metadata"].name === name)
  assert.lengthOf(found, 1, `${kind} ${name}`)
  return found[0]!
}

beforeAll(async () => {
  await run("go", ["build", "-o", program, "."], { cwd: "test/docker/helm" })
}, 600_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("the Helm chart", () => {
  it("gives every role its probes, rights, resources and disruption budget", async () => {
    const all = await render(values)
    for (const role of ROLES) {
      const { spec } = of(all, "Deployment", `audit-${role}`)
      const [container] = spec.template.spec.containers
      assert.deepStrictEqual(container.env, [{ name: "ALK_ROLES", value: role }])
      const ready = role === "api" ? "/readyz" : "/healthz"
      assert.strictEqual(container.readinessProbe.httpGet.path, ready)
      assert.strictEqual(container.livenessProbe.httpGet.path, "/healthz")
      assert.isTrue(container.securityContext.readOnlyRootFilesystem)
      assert.deepStrictEqual(container.envFrom, [{ configMapRef: { name: "audit" } }])
      assert.deepInclude(container.volumeMounts, {
        name: "secrets",
        mountPath: "/run/alk/secrets",
        readOnly: true
      })
      assert.isTrue(spec.template.spec.securityContext.runAsNonRoot)
      assert.isString(container.resources.requests.memory)
      const mounted = container.volumeMounts.map(({ name }: Json) => name)
      const volumes = spec.template.spec.volumes.map(({ name }: Json) => name)
      assert.sameMembers(mounted, volumes)
      const budget = of(all, "PodDisruptionBudget", `audit-${role}`)
      assert.deepStrictEqual(budget["spec"].selector, spec.selector)
      assert.deepInclude(spec.template.metadata.labels, spec.selector.matchLabels)
    }
    const service = of(all, "Service", "audit")
    const api = of(all, "Deployment", "audit-api")
    assert.deepInclude(api["spec"].template.metadata.labels, service["spec"].selector)
    const [rule] = of(all, "Ingress", "audit")["spec"].rules
    assert.strictEqual(rule.http.paths[0].backend.service.name, "audit")
    of(all, "PersistentVolumeClaim", "audit-exports")
    of(all, "ServiceAccount", "audit")
  })

  it("sets variables that the program knows, and no secret", async () => {
    const { env: _, ...known } = values
    const all = await render(known)
    const { data } = of(all, "ConfigMap", "audit")
    const names = Object.keys(data)
    const documented = new Set([...Object.keys(variables), ...secretNames.map(fileNameOf)])
    assert.deepStrictEqual(
      names.filter((name) => !documented.has(name)),
      []
    )
    for (const name of secretNames) assert.notInclude(names, name)
    const files = ["ALK_SECRET", "ALK_ADMIN_TOKEN", "CLICKHOUSE_PASSWORD", "KAFKA_SASL_PASSWORD"]
    for (const name of files) {
      assert.strictEqual(data[fileNameOf(name)], `/run/alk/secrets/${name}`)
    }
    const without = { ...known, clickhouse: { ...values.clickhouse, hasPassword: false } }
    const { data: few } = of(await render(without), "ConfigMap", "audit")
    assert.notProperty(few, "CLICKHOUSE_PASSWORD_FILE")
    assert.deepInclude(data, {
      KAFKA_BROKERS: "kafka-0:9092,kafka-1:9092,kafka-2:9092",
      KAFKA_TLS_CERT_FILE: "/run/alk/kafka-tls/tls.crt",
      ALK_REPLICATION: "3",
      CLICKHOUSE_CLUSTER: "main"
    })
    assert.strictEqual(
      of(await render(values), "ConfigMap", "audit")["data"].ALK_ORGANISATION_OF_NOBODY,
      "x"
    )
  })

  it("names the value that is missing or wrong", async () => {
    for (const name of ["image", "existingSecret", "signingKeySecret", "clickhouse"] as const) {
      const { [name]: _, ...rest } = values
      assert.include(await refusalOf(rest), name)
    }
    const wrong = { ...values, kafka: { ...values.kafka, sasl: { mechanism: "gssapi" } } }
    assert.include(await refusalOf(wrong), "mechanism")
    assert.include(await refusalOf({ ...values, api: { replicas: 0 } }), "replicas")
  })
})
