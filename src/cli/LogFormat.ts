/**
 * The form of log lines: one JSON object a line with flat fields, or the same for a person's eyes.
 * What is logged, and at which level, is decided where it happens.
 */
import { Cause, Logger, type LogLevel, References } from "effect"
import type { Config } from "../config/Config.ts"

type Fields = Record<string, unknown>

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !Cause.isCause(value)

const textOf = (value: unknown): string =>
  typeof value === "string" ? value : value instanceof Error ? value.message : JSON.stringify(value)

/** A log call's arguments as one message and its fields: objects are fields, the rest is text. */
const fieldsOf = (options: Logger.Options<unknown>): Fields => {
  const parts = Array.isArray(options.message) ? options.message : [options.message]
  const fields: Fields = {}
  for (const part of parts) if (isFields(part)) Object.assign(fields, part)
  const annotations = options.fiber.getRef(References.CurrentLogAnnotations)
  const cause = options.cause.reasons.length === 0 ? {} : { cause: Cause.pretty(options.cause) }
  const message = parts
    .filter((part) => !isFields(part))
    .map(textOf)
    .join(" ")
  return { message, ...fields, ...annotations, ...cause }
}

const levelOf = (level: LogLevel.LogLevel): string => level.toLowerCase()

const jsonLines = Logger.make((options) => {
  const { message, ...fields } = fieldsOf(options)
  const time = options.date.toISOString()
  const line = { time, level: levelOf(options.logLevel), message, ...fields }
  process.stdout.write(`${JSON.stringify(line)}\n`)
})

const textOfValue = (value: unknown): string =>
  typeof value === "string" && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value)

const forPeople = Logger.make((options) => {
  const { message, ...fields } = fieldsOf(options)
  const time = options.date.toISOString().slice(11, 23)
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${textOfValue(value)}`)
  const level = levelOf(options.logLevel).toUpperCase().padEnd(5)
  process.stdout.write(`${time} ${level} ${String(message)}${rest.join("")}\n`)
})

/** The logger that the configuration asks for. */
export const layerLogFormat = ({ log }: Config) =>
  Logger.layer([log.format === "json" ? jsonLines : forPeople])
