/**
 * The program on a broker and a store that ask it for TLS, a password and a certificate: it starts,
 * keeps the chain and answers, and it does not start without what it is asked for.
 */
import { readFileSync, rmSync } from "node:fs"
import { request as plainRequest } from "node:http"
import { createServer, type Server } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, inject, it } from "vitest"
import { type SecuredBroker, startSecuredBroker } from "../consumers/SecuredBroker.ts"
import { event } from "../support/BlackBox.ts"
import { Client } from "../support/Client.ts"
import { freshFolder, start, TEST_SECRET, testKey } from "../support/Program.ts"
import { signingKeyIn } from "../support/SigningKeyFile.ts"

const PREFIX = `secured${process.pid}`
const key = testKey("secured")
const folder = freshFolder("secured-parts")

let broker: SecuredBroker
let proxy: Server

/** TLS before the store of the run, for clients that show the certificate of the test. */
const startProxy = (files: { readonly ca: Buffer; readonly key: Buffer }): Promise<Server> => {
  const target = new URL(inject("storeUrl"))
  const tls = { key: files.key, cert: files.ca, ca: files.ca, requestCert: true }
  const server = createServer({ ...tls, rejectUnauthorized: true }, (request, response) => {
    const { headers, method, url: path } = request
    const passed = plainRequest(
      {
        host: target.hostname,
        port: target.port,
        method,
        path,
        headers: { ...headers, host: target.host }
      },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers)
        answer.pipe(response)
      }
    )
    passed.on("error", () => response.destroy())
    request.pipe(passed)
  })
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)))
}

const environment = (): Record<string, string> => {
  const { KAFKA_TLS_CERT_FILE: certificate = "", KAFKA_TLS_KEY_FILE: keyFile = "" } = broker.mutual
  return {
    ...broker.mutual,
    ALK_TOPIC_PREFIX: PREFIX,
    ALK_PARTITIONS: "1",
    ALK_REPLICATION: "1",
    ALK_SECRET: TEST_SECRET,
    ALK_SIGNING_KEY_FILE: signingKeyIn(folder),
    ALK_BOOTSTRAP_KEYS: `${key}=secured:read+write`,
    CLICKHOUSE_URL: `https://localhost:${(proxy.address() as AddressInfo).port}`,
    CLICKHOUSE_DATABASE: PREFIX,
    CLICKHOUSE_TLS_CA_FILE: certificate,
    CLICKHOUSE_TLS_CERT_FILE: certificate,
    CLICKHOUSE_TLS_KEY_FILE: keyFile
  }
}

beforeAll(async () => {
  broker = await startSecuredBroker(`${PREFIX}.`)
  const { KAFKA_TLS_CERT_FILE: certificate = "", KAFKA_TLS_KEY_FILE: keyFile = "" } = broker.mutual
  proxy = await startProxy({ ca: readFileSync(certificate), key: readFileSync(keyFile) })
})

afterAll(async () => {
  proxy.close()
  proxy.closeAllConnections()
  await broker.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("on parts that ask for TLS, a password and a certificate", () => {
  it("the program starts, keeps the chain, and answers", async () => {
    const program = await start(environment())
    const api = new Client(program.url, key)
    const sent = Array.from({ length: 100 }, (_, n) => event(n))
    const { status, text } = await api.batch(sent, { headers: { "x-service-sync": "true" } })
    assert.strictEqual(status, 200, text)
    const { body } = await api.call("/v1/verify")
    assert.deepInclude(body, { valid: true, events_checked: 100 })
    assert.strictEqual((await api.call("/v1/events?outcome=failure")).body.total, 20)
    assert.strictEqual(await program.stop(), 0)
  })

  const without = (...names: ReadonlyArray<string>): Record<string, string> =>
    Object.fromEntries(Object.entries(environment()).filter(([name]) => !names.includes(name)))

  it.each([
    ["the broker's certificate", ["KAFKA_TLS_CERT_FILE", "KAFKA_TLS_KEY_FILE"], /Kafka/],
    ["the broker's authority", ["KAFKA_TLS_CA_FILE"], /Kafka/],
    ["a password", ["KAFKA_SASL_MECHANISM", "KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD"], /Kafka/]
  ])("it does not start without %s, and says so", async (_, names, reason) => {
    const ended = await start(without(...names)).then(
      async (program) => `started: ${await program.stop()}`,
      (error: Error) => error.message
    )
    assert.match(ended, /ended with 1 before it was ready/)
    assert.match(ended, reason)
  })
})

describe("a file that is not there", () => {
  it("stops the start, and is named", async () => {
    const missing = join(folder, "missing.pem")
    const ended = await start({ ...environment(), KAFKA_TLS_CA_FILE: missing }).then(
      async (program) => `started: ${await program.stop()}`,
      (error: Error) => error.message
    )
    assert.match(ended, /ended with 1 before it was ready/)
    assert.include(ended, missing)
    assert.include(ended, "KAFKA_TLS_CA_FILE")
  })
})
