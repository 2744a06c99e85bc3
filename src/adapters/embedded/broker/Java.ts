/** Finds the Java that runs the embedded broker and checks that it is new enough. */
import { resolve } from "node:path"
import { Effect, Schema } from "effect"
import { runCommand } from "../Command.ts"

/** There is no Java, or it is too old. */
export class JavaUnusable extends Schema.TaggedError<JavaUnusable>()("JavaUnusable", {
  message: Schema.String
}) {}

/** Brokers of Kafka 4 need Java 17 (kafka.apache.org/documentation/#java). */
const JAVA_VERSION_MIN = 17
const WAY_OUT =
  `install Java ${JAVA_VERSION_MIN} or newer (Debian: apt-get install openjdk-17-jre-headless,`
  + " macOS: brew install openjdk), or set KAFKA_BROKERS to a Kafka cluster"

const versionIn = (lines: ReadonlyArray<string>): number | undefined => {
  const [, first, second] = /version "(\d+)(?:\.(\d+))?/.exec(lines.join("\n")) ?? []
  if (first === undefined) return undefined
  return first === "1" ? Number(second) : Number(first)
}

/** The path of a usable `java`: that of JAVA_HOME if it is set, else the one on the PATH. */
export const findJava: Effect.Effect<string, JavaUnusable> = Effect.gen(function* () {
  const home = process.env["JAVA_HOME"]
  const java = home ? resolve(home, "bin", "java") : "java"
  const found = home ? `JAVA_HOME is ${home}, but` : "Java was not found:"
  const { lines } = yield* runCommand(java, ["-version"]).pipe(
    Effect.mapError(
      () =>
        new JavaUnusable({
          message: home
            ? `${found} ${java} can't be run: point it at a Java installation, or ${WAY_OUT}`
            : `${found} ${WAY_OUT}`
        })
    )
  )
  const version = versionIn(lines)
  if (version === undefined || version < JAVA_VERSION_MIN) {
    return yield* new JavaUnusable({
      message:
        `${java} is ${version === undefined ? "no Java that alk knows" : `Java ${version}`},`
        + ` and Kafka needs ${JAVA_VERSION_MIN}: ${WAY_OUT}`
    })
  }
  return java
})
