/**
 * The production shape on a container engine: the images of `docker/compose.yaml` with its
 * settings, and the program's own image, built from `docker/Dockerfile`. Knows no test.
 */
import { generateKeyPairSync } from "node:crypto"
import {
  GenericContainer,
  getContainerRuntimeClient,
  Network,
  type StartedNetwork,
  type StartedTestContainer,
  Wait
} from "testcontainers"
import { freePort } from "../support/FreePort.ts"
import { type Healthcheck, ownServices, readCompose, type Service } from "./Compose.ts"

/** Milliseconds that an image may take to be fetched or built and to be up. */
const START_TIMEOUT_MS = 300_000
/** The listener of the broker that is meant for clients outside of the network. */
const EXTERNAL_PORT = 9_094
const API_PORT = 8_080

/** Why no container can be started here, or undefined if one can. */
export const whyNoContainers = async (): Promise<string | undefined> => {
  try {
    await getContainerRuntimeClient()
    return undefined
  } catch (error) {
    return `no container engine answers: ${(error as Error).message}`
  }
}

export interface Started {
  /** Base URLs of the API containers. */
  readonly urls: ReadonlyArray<string>
  /** Address of the broker for clients on this machine. */
  readonly bootstrap: string
  readonly stop: () => Promise<void>
}

/** What compose mounts as a secret. */
const signingKey = generateKeyPairSync("ed25519")
  .privateKey.export({
    format: "pem",
    type: "pkcs8"
  })
  .toString()

const milliseconds = (duration: string): number => Number(duration.replace(/s$/, "")) * 1_000

/** What has been started so far, in the order of the start. */
interface Stack {
  readonly network: StartedNetwork
  readonly running: Array<StartedTestContainer>
}

const container = (image: GenericContainer, name: string, service: Service, { network }: Stack) =>
  image
    .withNetwork(network)
    .withNetworkAliases(service.hostname ?? name)
    .withEnvironment({ ...service.environment })
    .withStartupTimeout(START_TIMEOUT_MS)

const healthy = (image: GenericContainer, healthcheck: Healthcheck | undefined) => {
  const { interval, retries, start_period, test, timeout } = healthcheck as Required<Healthcheck>
  const [kind, command, ...rest] = test
  if (kind !== "CMD" || command === undefined) throw new Error(`not understood: ${test.join(" ")}`)
  return image
    .withHealthCheck({
      test: ["CMD", command, ...rest],
      interval: milliseconds(interval),
      timeout: milliseconds(timeout),
      startPeriod: milliseconds(start_period),
      retries
    })
    .withWaitStrategy(Wait.forHealthCheck())
}

const run = async (stack: Stack, image: GenericContainer): Promise<StartedTestContainer> => {
  const started = await image.start()
  stack.running.push(started)
  return started
}

/** The broker tells its clients where it is, so its port on this machine is chosen beforehand. */
const startKafka = async (stack: Stack, service: Service): Promise<string> => {
  const { info } = await getContainerRuntimeClient()
  const port = await freePort()
  const bootstrap = `${info.containerRuntime.host}:${port}`
  const listeners = service.environment["KAFKA_ADVERTISED_LISTENERS"]!
  const environment = {
    ...service.environment,
    KAFKA_ADVERTISED_LISTENERS: listeners.replace(/EXTERNAL:\/\/[^,]+/, `EXTERNAL://${bootstrap}`)
  }
  const image = container(
    new GenericContainer(service.image),
    "kafka",
    { ...service, environment },
    stack
  ).withExposedPorts({ container: EXTERNAL_PORT, host: port })
  await run(stack, healthy(image, service.healthcheck))
  return bootstrap
}

const isApi = ({ environment }: Service): boolean => environment["ALK_ROLES"] === "api"

/** The workers say that they are ready; an API is ready when a write would commit. */
const startOwn = async (
  stack: Stack,
  image: GenericContainer,
  name: string,
  service: Service
): Promise<string | undefined> => {
  const { ALK_SIGNING_KEY_FILE: keyFile = "" } = service.environment
  const own = container(image, name, service, stack).withCopyContentToContainer([
    { content: signingKey, target: keyFile, mode: 0o444 }
  ])
  if (!isApi(service)) {
    await run(stack, own.withWaitStrategy(Wait.forLogMessage(/"message":"ready"/)))
    return undefined
  }
  const started = await run(
    stack,
    own
      .withExposedPorts(API_PORT)
      .withWaitStrategy(Wait.forHttp("/readyz", API_PORT).forStatusCode(200))
  )
  return `http://${started.getHost()}:${started.getMappedPort(API_PORT)}`
}

/** Start everything that `docker/compose.yaml` names; `variables` is what `.env` would hold. */
export const startContainers = async (
  variables: Readonly<Record<string, string>>
): Promise<Started> => {
  const compose = readCompose(variables)
  const { clickhouse, kafka } = compose.services
  const stack: Stack = { network: await new Network().start(), running: [] }
  const stop = async () => {
    for (const started of stack.running.reverse()) await started.stop()
    await stack.network.stop()
  }
  try {
    const store = container(
      new GenericContainer(clickhouse!.image),
      "clickhouse",
      clickhouse!,
      stack
    )
    const [bootstrap] = await Promise.all([
      startKafka(stack, kafka!),
      run(stack, healthy(store, clickhouse!.healthcheck))
    ])
    const image = `alk-test:${stack.network.getId().slice(0, 12)}`
    await GenericContainer.fromDockerfile(".", "docker/Dockerfile").build(image)
    const workersFirst = ownServices(compose).toSorted(
      ([, left], [, right]) => Number(isApi(left)) - Number(isApi(right))
    )
    const urls: Array<string> = []
    for (const [name, service] of workersFirst) {
      const url = await startOwn(stack, new GenericContainer(image), name, service)
      if (url !== undefined) urls.push(url)
    }
    return { urls, bootstrap, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
