/**
 * The writer of a command and its running number, by which a replayed command is recognised. Each
 * writer of `alk.commands` numbers its commands from 1, and they are applied in that order. A
 * number not above the writer's last one is a replay.
 */
import { randomBytes } from "node:crypto"

/** The value of the header `alk-writer`. */
export interface WriterPosition {
  /** `<microseconds since 1970 of its start>-<8 hex digits>` */
  readonly writer: string
  /** From 1. */
  readonly number: number
}

const DAY_MICROS = 86_400_000_000
/** A writer is replaced by a new one after this time. */
const WRITER_LIFE_MICROS = DAY_MICROS
/**
 * Time after its start in which a writer is remembered: its life, and as long as a command may wait
 * on the topic, and a day for clocks that differ. What is older is taken for a copy.
 */
export const WRITER_KEPT_MICROS = WRITER_LIFE_MICROS + 14 * DAY_MICROS + DAY_MICROS

const FORM = /^([0-9]{1,16})-[0-9a-f]{8}$/

const startOf = (writer: string): number => Number(FORM.exec(writer)?.[1])

/** Numbers what one process writes. */
export class CommandWriter {
  #writer: string | undefined
  #number = 0

  /** The header of the next record. */
  next(nowMicros: number): string {
    const age = this.#writer === undefined ? Infinity : nowMicros - startOf(this.#writer)
    if (this.#writer === undefined || age > WRITER_LIFE_MICROS || age < 0) {
      this.#writer = `${nowMicros}-${randomBytes(4).toString("hex")}`
      this.#number = 0
    }
    this.#number += 1
    return `${this.#writer}/${this.#number}`
  }
}

/** True for a name that a writer has given itself. */
export const isWriter = (writer: string): boolean => FORM.test(writer)

/** The position in a header; undefined for what no writer has written. */
export const readWriterPosition = (header: string): WriterPosition | undefined => {
  const [writer = "", digits = "", ...more] = header.split("/")
  const number = Number(digits)
  const isPosition =
    isWriter(writer) && /^[1-9][0-9]*$/.test(digits) && Number.isSafeInteger(number)
  return isPosition && more.length === 0 ? { writer, number } : undefined
}

/** True for a writer that is not remembered any more. */
export const isForgotten = (writer: string, nowMicros: number): boolean =>
  startOf(writer) < nowMicros - WRITER_KEPT_MICROS

/** What a partition knows of the commands that it has applied. */
export interface AppliedCommands {
  /** Number of the last one of the writer in question; undefined if none is remembered. */
  readonly last: number | undefined
  /** Times of receipt up to this one are of commands that may have been applied, whatever `last` is. */
  readonly copiesUpTo: number
}

/**
 * Why a command is taken for a copy; undefined if it is not one. `receivedMicros`: when it was
 * received, if it can be read.
 */
export const copyRefusal = (
  { number, writer }: WriterPosition,
  receivedMicros: number | undefined,
  { copiesUpTo, last }: AppliedCommands,
  nowMicros: number
): string | undefined => {
  if (last !== undefined && number <= last) {
    return "it is a copy: the command was applied before"
  }
  if (receivedMicros !== undefined && receivedMicros <= copiesUpTo) {
    return (
      "it may be a copy: it was received before the newest command that was applied when alk.state was "
      + "damaged, which does not say any more whether this one was"
    )
  }
  return last === undefined && isForgotten(writer, nowMicros)
    ? "it is a copy, or of a writer older than any that may still write"
    : undefined
}
