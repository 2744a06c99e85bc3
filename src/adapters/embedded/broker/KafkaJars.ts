/**
 * Gets the jars of the Kafka broker through Maven into the cache folder, once, and afterwards only
 * checks that they are all there.
 */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { runCommand } from "../Command.ts"

export const KAFKA_VERSION = "4.3.1"
/** The version that Kafka itself asks for; without this binding the broker logs nothing. */
const LOG4J_VERSION = "2.25.4"
/** Pinned: what Maven would choose depends on its own version. */
const COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
const BROKER_JAR = `kafka_2.13-${KAFKA_VERSION}.jar`
const MANIFEST = "manifest.json"
/** An unfinished download is deleted after this long. */
const PARTIAL_MILLISECONDS_MAX = 3_600_000
/** Time between two lines of progress. */
const PROGRESS_MILLISECONDS = 1_000
/** Another process may put its copy in place first; it then has to be complete. */
const PUBLISH_ATTEMPTS_MAX = 3

/** Maven is needed for the first start and is not there. */
export class MavenMissing extends Schema.TaggedError<MavenMissing>()("MavenMissing", {
  message: Schema.String
}) {}

/** The jars could not be fetched, or the cache folder can't be written. */
export class KafkaJarsUnavailable extends Schema.TaggedError<KafkaJarsUnavailable>()(
  "KafkaJarsUnavailable",
  { message: Schema.String, cause: Schema.optionalKey(Schema.Defect()) }
) {}

const Manifest = Schema.fromJsonString(
  Schema.Struct({
    kafka: Schema.Literal(KAFKA_VERSION),
    files: Schema.Array(Schema.Struct({ name: Schema.String, bytes: Schema.Int }))
  })
)

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>alk</groupId>
  <artifactId>embedded-broker</artifactId>
  <version>${KAFKA_VERSION}</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>${KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>${LOG4J_VERSION}</version>
    </dependency>
  </dependencies>
</project>
`

const jarsIn = (folder: string) =>
  fs
    .readdirSync(folder)
    .filter((name) => name.endsWith(".jar"))
    .sort()
    .map((name) => ({ name, bytes: fs.statSync(join(folder, name)).size }))

/** True if the folder holds exactly the jars of its manifest, each with its full size. */
const isComplete = (folder: string): boolean => {
  try {
    const manifest = Schema.decodeSync(Manifest)(fs.readFileSync(join(folder, MANIFEST), "utf8"))
    return JSON.stringify(manifest.files) === JSON.stringify(jarsIn(folder))
  } catch {
    return false
  }
}

const folderOf = (cacheDir: string): string => join(cacheDir, `kafka-${KAFKA_VERSION}`)

/** True if no start has to fetch them any more. */
export const hasKafkaJars = (cacheDir: string): boolean => isComplete(folderOf(cacheDir))

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`

const sizeUnits: Readonly<Record<string, number>> = { B: 1, kB: 1e3, MB: 1e6 }

/** Turns Maven's lines about single files into a line a second for a person. */
const progressOf = (report: (line: string) => void) => {
  let [files, bytes, last] = [0, 0, 0]
  return (line: string): void => {
    const [, size, unit] = /Downloaded from .*\(([\d.]+) (k?B|MB)/.exec(line) ?? []
    if (size === undefined || unit === undefined) return
    files += 1
    bytes += Number(size) * (sizeUnits[unit] ?? 0)
    if (Date.now() - last < PROGRESS_MILLISECONDS) return
    last = Date.now()
    report(`Kafka ${KAFKA_VERSION}: ${files} files fetched, ${megabytes(bytes)}`)
  }
}

const unwritable = (cacheDir: string) => (cause: unknown) =>
  new KafkaJarsUnavailable({
    message:
      `The cache folder ${cacheDir} can't be written (${(cause as Error).message}):`
      + " give this user the right and the space to write there, or set ALK_CACHE_DIR",
    cause
  })

/** The line of Maven's output that says most about a failure. */
const mavenProblem = (lines: ReadonlyArray<string>): string =>
  lines
    .find((line) => line.startsWith("[ERROR]"))
    ?.slice("[ERROR]".length)
    .trim()
  ?? lines.at(-1)
  ?? "it said nothing"

const fetchInto = Effect.fnUntraced(function* (folder: string, report: (line: string) => void) {
  const args = [
    "--batch-mode",
    "--strict-checksums",
    "--file",
    join(folder, "pom.xml"),
    COPY_GOAL,
    "-DincludeScope=runtime",
    `-DoutputDirectory=${folder}`
  ]
  const { exitCode, lines } = yield* runCommand("mvn", args, {
    cwd: folder,
    onLine: progressOf(report)
  }).pipe(
    Effect.mapError(
      () =>
        new MavenMissing({
          message:
            "Maven (mvn) was not found, and the first start fetches Kafka with it: install"
            + " Maven (Debian: apt-get install maven, macOS: brew install maven), or set"
            + " KAFKA_BROKERS to a Kafka cluster"
        })
    )
  )
  if (exitCode === 0 && fs.existsSync(join(folder, BROKER_JAR))) return
  return yield* new KafkaJarsUnavailable({
    message:
      `Maven could not fetch Kafka ${KAFKA_VERSION}: ${mavenProblem(lines)}. Check the`
      + " network (a proxy or mirror goes into ~/.m2/settings.xml) and start again,"
      + " or set KAFKA_BROKERS to a Kafka cluster"
  })
})

const isMissing = (cause: unknown) => (cause as NodeJS.ErrnoException).code === "ENOENT"

/** Moves a damaged folder out of the way; no harm if another process was faster. */
const moveAside = (folder: string): void => {
  const aside = `${folder}.${randomUUID()}.partial`
  try {
    fs.renameSync(folder, aside)
  } catch (cause) {
    if (isMissing(cause)) return
    throw cause
  }
  fs.rmSync(aside, { recursive: true, force: true })
}

/** Puts the fetched folder in its place; of several processes that do so one wins. */
const publish = (partial: string, folder: string): void => {
  for (let attempt = 1; !isComplete(folder); attempt++) {
    moveAside(folder)
    try {
      fs.renameSync(partial, folder)
    } catch (cause) {
      if (attempt === PUBLISH_ATTEMPTS_MAX) throw cause
    }
  }
}

const deleteAbandoned = (cacheDir: string): void => {
  for (const name of fs.readdirSync(cacheDir).filter((name) => name.endsWith(".partial"))) {
    const path = join(cacheDir, name)
    const { mtimeMs } = fs.statSync(path, { throwIfNoEntry: false }) ?? {}
    if (mtimeMs !== undefined && Date.now() - mtimeMs > PARTIAL_MILLISECONDS_MAX) {
      fs.rmSync(path, { recursive: true, force: true })
    }
  }
}

const fetchJars = Effect.fnUntraced(function* (
  cacheDir: string,
  folder: string,
  report: (line: string) => void
) {
  const started = Date.now()
  const write = <A>(run: () => A) => Effect.try({ try: run, catch: unwritable(cacheDir) })
  report(`Kafka ${KAFKA_VERSION} is not in ${cacheDir} yet: fetching 43 MB with Maven, once`)
  const partial = yield* Effect.acquireRelease(
    write(() => {
      fs.mkdirSync(cacheDir, { recursive: true })
      deleteAbandoned(cacheDir)
      const path = `${folder}.${randomUUID()}.partial`
      fs.mkdirSync(path)
      return path
    }),
    (path) => Effect.sync(() => fs.rmSync(path, { recursive: true, force: true }))
  )
  yield* write(() => fs.writeFileSync(join(partial, "pom.xml"), pom))
  yield* fetchInto(partial, report)
  const files = yield* write(() => jarsIn(partial))
  yield* write(() => {
    const manifest = { kafka: KAFKA_VERSION, files }
    fs.writeFileSync(join(partial, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`)
    publish(partial, folder)
  })
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const seconds = ((Date.now() - started) / 1_000).toFixed(1)
  report(`Kafka ${KAFKA_VERSION}: ${files.length} jars, ${megabytes(bytes)}, in ${seconds} s`)
}, Effect.scoped)

/**
 * The folder that holds the broker's jars and nothing else that Java would load. The first call
 * fetches them (`report` gets a line now and then), later ones need neither Maven nor a network.
 */
export const kafkaJars = Effect.fn("KafkaJars.find")(function* (
  cacheDir: string,
  report: (line: string) => void
) {
  const folder = folderOf(cacheDir)
  if (!isComplete(folder)) yield* fetchJars(cacheDir, folder, report)
  return folder
})
