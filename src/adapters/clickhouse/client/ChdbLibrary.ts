/**
 * Loads the library that is ClickHouse inside this process (chDB), or says what to do on a machine
 * that has none. Its native part is an npm package per platform; package.json replaces those that
 * are not published by an empty package, which loads and can do nothing. Opens no folder.
 */
import { createRequire } from "node:module"
import { Schema } from "effect"
import { defined } from "../../../domain/Defined.ts"

/** This machine has no ClickHouse to run inside the process; the message is one line. */
export class StoreEngineMissing extends Schema.TaggedError<StoreEngineMissing>()(
  "StoreEngineMissing",
  { message: Schema.String, cause: Schema.optionalKey(Schema.Defect()) }
) {}

export interface Platform {
  /** As in `process.platform`. */
  readonly platform: string
  /** As in `process.arch`. */
  readonly arch: string
}

const requireBesideUs = createRequire(import.meta.url)

/** `@chdb/lib-linux-x64-gnu`, `@chdb/lib-darwin-arm64`; the name need not exist. */
const nativePackage = ({ arch, platform }: Platform): string =>
  `@chdb/lib-${platform}-${arch}${platform === "linux" ? "-gnu" : ""}`

const missing = ({ arch, platform }: Platform, reason: string, cause?: unknown) =>
  new StoreEngineMissing({
    message:
      `ClickHouse can't run inside this process on ${platform}-${arch} (${reason}):`
      + " set CLICKHOUSE_URL to a ClickHouse server; docs/operate.md says how",
    ...defined({ cause })
  })

/**
 * Checks that the native part for the platform is there, and loads it (500 MB of address space).
 * @throws StoreEngineMissing
 */
export const checkNativePart = (at: Platform): void => {
  let native: unknown
  try {
    native = createRequire(requireBesideUs.resolve("chdb"))(nativePackage(at))
  } catch (cause) {
    const { code, message } = cause as { readonly code?: string; readonly message: string }
    const reason =
      code === "MODULE_NOT_FOUND" ? "npm has no chDB for it here" : message.replaceAll(/\s+/g, " ")
    throw missing(at, reason, cause)
  }
  if (typeof (native as { CreateConnection?: unknown }).CreateConnection !== "function") {
    throw missing(at, "chDB is not published for it")
  }
}

/** @throws StoreEngineMissing */
export const loadChdb = async (): Promise<typeof import("chdb/connection")> => {
  checkNativePart(process)
  return import("chdb/connection")
}

/** Signals of a process that can't go on. */
const FATAL_SIGNALS = [
  "SIGABRT",
  "SIGBUS",
  "SIGFPE",
  "SIGILL",
  "SIGSEGV",
  "SIGSYS",
  "SIGTRAP"
] as const

/**
 * Lets fatal signals end the process at once, as by default. The first connection sets handlers for
 * them that wait up to five minutes for a report, while the process keeps its port and its folder.
 */
export const endOnFatalSignals = (): void => {
  const listener = () => {}
  for (const signal of FATAL_SIGNALS) {
    // The default comes back when the last listener goes.
    process.on(signal, listener)
    process.off(signal, listener)
  }
}
