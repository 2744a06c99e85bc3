/** Kafka's own load tools, which the broker does without: fetched through Maven once. */
import { execFile } from "node:child_process"
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { Kafka, logLevel } from "kafkajs"
import { KAFKA_VERSION } from "../../../src/adapters/embedded/broker/KafkaJars.ts"

const run = promisify(execFile)

const JARS = `coverage/kafka-tools-${KAFKA_VERSION}`
const PARTITIONS = 4

const pom = `<project><modelVersion>4.0.0</modelVersion><groupId>bench</groupId>
<artifactId>bench</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
<version>${KAFKA_VERSION}</version></dependency></dependencies></project>
`

/** The class path of the tools. */
const classPath = async (): Promise<string> => {
  if (!existsSync(JARS)) {
    const partial = `${JARS}.partial`
    rmSync(partial, { recursive: true, force: true })
    mkdirSync(partial, { recursive: true })
    writeFileSync(join(partial, "pom.xml"), pom)
    const goal = ["-B", "-q", "dependency:copy-dependencies", "-DoutputDirectory=."]
    await run("mvn", goal, { cwd: partial })
    renameSync(partial, JARS)
  }
  return join(JARS, "*")
}

const tool = async (main: string, args: ReadonlyArray<string>): Promise<string> => {
  const java = ["-Xmx256m", "-cp", await classPath(), `org.apache.kafka.tools.${main}`, ...args]
  const { stdout } = await run("java", java, { maxBuffer: 16e6 })
  return stdout
}

export interface KafkaRates {
  /** Records a second of ProducerPerformance with acks=all. */
  readonly producer: number
  /** The same with zstd, which alk uses. */
  readonly producerZstd: number
  /** Records a second of ConsumerPerformance, without the time to join its group. */
  readonly consumer: number
}

const produce = async (
  broker: string,
  topic: string,
  { count, file }: { readonly count: number; readonly file: string },
  properties: ReadonlyArray<string>
): Promise<number> => {
  const stdout = await tool("ProducerPerformance", [
    ...["--topic", topic, "--num-records", String(count), "--payload-file", file],
    ...["--throughput", "-1", "--producer-props", `bootstrap.servers=${broker}`, "acks=all"],
    ...properties
  ])
  const [, rate] = /([\d.]+) records\/sec(?!.*records\/sec)/s.exec(stdout) ?? []
  if (rate === undefined) throw new Error(`ProducerPerformance: ${stdout}`)
  return Number(rate)
}

/** The last column of the tool's last line: records a second of fetching. */
const consume = async (broker: string, topic: string, count: number): Promise<number> => {
  const stdout = await tool("ConsumerPerformance", [
    ...["--bootstrap-server", broker, "--topic", topic, "--num-records", String(count)],
    ...["--timeout", "60000"]
  ])
  const rate = Number(stdout.trim().split("\n").at(-1)?.split(",").at(-1))
  if (!(rate > 0)) throw new Error(`ConsumerPerformance: ${stdout}`)
  return rate
}

/** The tools on topics of their own; the records are lines of a file. */
export const kafkaAlone = async (
  broker: string,
  load: { readonly count: number; readonly file: string }
): Promise<KafkaRates> => {
  const plain = `bench-${Date.now()}`
  const zstd = `${plain}-zstd`
  const admin = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  try {
    await admin.createTopics({
      topics: [plain, zstd].map((topic) => ({ topic, numPartitions: PARTITIONS }))
    })
    return {
      producer: await produce(broker, plain, load, []),
      producerZstd: await produce(broker, zstd, load, ["compression.type=zstd"]),
      consumer: await consume(broker, plain, load.count)
    }
  } finally {
    await admin.deleteTopics({ topics: [plain, zstd] })
    await admin.disconnect()
  }
}
