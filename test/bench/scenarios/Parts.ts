/**
 * alk beside its parts, in the same run on the same broker and store with the same records: Kafka's
 * own load tools, plain inserts into the same table, and SHA-256 over the same bytes.
 */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshFolder } from "../../support/Program.ts"
import type { Api } from "../harness/Api.ts"
import { hashRate } from "../harness/Hashes.ts"
import { kafkaAlone } from "../harness/KafkaTools.ts"
import { bodiesOf, type LoadShape, sendFor, sendWhile } from "../harness/Load.ts"
import { PlainInserts } from "../harness/PlainInserts.ts"
import { Program, type Subject } from "../harness/Programs.ts"
import type { Bench, PlainScenario } from "../Scenario.ts"

const SHAPE: LoadShape = { batch: 1_000, size: "400 bytes", sync: false, clients: 6 }
/** Stored events that the parts get, again and again. */
const SAMPLE = 20_000
/** Records that Kafka's tools write and read: they take seconds to get ready. */
const RECORDS = { quick: 30_000, full: 1_000_000 }

const END_TO_END = "alk, until listed"
const PRODUCER = "Kafka's ProducerPerformance, acks=all"
const ZSTD = "Kafka's ProducerPerformance, acks=all, zstd"
const CONSUMER = "Kafka's ConsumerPerformance"
const INSERTS = "inserts of the same rows into the same table"
const SHA = "SHA-256 of the same events, one thread"

const sampleOf = async (api: Api): Promise<ReadonlyArray<string>> => {
  const text = await api.text(`/v1/events?order=asc&to_sequence=${SAMPLE}`, {
    headers: { accept: "application/x-ndjson" }
  })
  const lines = text.trimEnd().split("\n")
  if (lines.length !== SAMPLE) throw new Error(`${lines.length} of ${SAMPLE} events are listed`)
  return lines
}

const runOnce = async (
  { options, recorder, say }: Bench,
  programs: ReadonlyArray<readonly [Subject, Program]>,
  own: Program,
  file: string,
  sample: ReadonlyArray<string>
): Promise<void> => {
  for (const [subject, program] of programs) {
    say(`${END_TO_END}${programs.length > 1 ? ` (${subject.name})` : ""}`)
    const load = await sendFor([program.api("bench")], SHAPE, bodiesOf(SHAPE), options.seconds)
    recorder.add(END_TO_END, "events/s", load.events / load.seconds, { of: subject.name })
  }
  say("Kafka's tools")
  const count = RECORDS[options.quick ? "quick" : "full"]
  const kafka = await kafkaAlone(own.process.kafka, { count, file })
  recorder.add(PRODUCER, "records/s", kafka.producer)
  recorder.add(ZSTD, "records/s", kafka.producerZstd)
  recorder.add(CONSUMER, "records/s", kafka.consumer)
  say("inserts, SHA-256")
  const inserts = await PlainInserts.read(own.process.store)
  recorder.add(INSERTS, "rows/s", await inserts.rate(count / 2))
  recorder.add(SHA, "events/s", hashRate(sample.map((event) => Buffer.from(event))))
}

const ratios = ({ recorder }: Bench): void => {
  recorder.ratio("alk, of ProducerPerformance", [END_TO_END], [PRODUCER], 0.4)
  recorder.ratio("alk, of ProducerPerformance with zstd", [END_TO_END], [ZSTD])
  recorder.ratio("alk, of ConsumerPerformance", [END_TO_END], [CONSUMER])
  recorder.ratio("alk, of inserts of the same rows", [END_TO_END], [INSERTS])
  recorder.ratio("alk, of SHA-256 alone", [END_TO_END], [SHA])
  recorder.ratio("alk, of against", [END_TO_END], [END_TO_END, "against"], 3)
}

export const parts: PlainScenario = {
  name: "parts",
  title: "Beside what the parts can do alone",
  about: ({ quick, seconds }) =>
    `One after another in each run. alk: batches of 1,000, one tenant, ${seconds} s. Kafka's tools: `
    + `${RECORDS[quick ? "quick" : "full"].toLocaleString("en-US")} records that are the stored `
    + `JSON of the same events, on the broker of the program. Inserts: rows of the events' table `
    + `in blocks of 10,000, over HTTP.`,
  run: async (bench) => {
    const { options, subjects } = bench
    const folder = freshFolder("bench-sample")
    const programs: Array<readonly [Subject, Program]> = []
    try {
      for (const subject of subjects) {
        const environment = {
          ALK_ROLES: "api,sequencer,projection,store",
          ALK_EMBEDDED_OPEN: "true"
        }
        const program = await Program.start(subject, { tenants: ["bench"], environment })
        programs.push([subject, program])
        const until = performance.now() + Math.min(10, options.seconds) * 1_000
        const bodies = bodiesOf(SHAPE)
        await sendWhile(
          [program.api("bench")],
          SHAPE,
          (request) => bodies[request % bodies.length]!,
          (sent) => sent < SAMPLE || performance.now() < until
        )
      }
      const own = programs[0]![1]
      const sample = await sampleOf(own.api("bench"))
      const file = join(folder, "events.ndjson")
      writeFileSync(file, sample.join("\n"))
      for (let run = 0; run < options.runs; run++) {
        bench.say(`run ${run + 1} of ${options.runs}`)
        const order = run % 2 === 0 ? programs : [...programs].reverse()
        await runOnce(bench, order, own, file, sample)
      }
      ratios(bench)
    } finally {
      for (const [, program] of programs) await program.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
