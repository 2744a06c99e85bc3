/**
 * Files in one file, written as a stream, entry after entry. The same entries always give the same
 * bytes.
 */
import { Context, Schema, type Stream } from "effect"

/** The archive could not be written. */
export class ArchiveFailed extends Schema.TaggedError<ArchiveFailed>()("ArchiveFailed", {
  cause: Schema.Defect()
}) {}

/** One file on its way into an archive. */
export interface ArchiveEntry<E> {
  /** Path inside the archive. */
  readonly name: string
  /** May be run as a program. */
  readonly isProgram: boolean
  /** Read when the entries before it are written. */
  readonly content: Stream.Stream<Uint8Array, E>
}

export class Archive extends Context.Service<
  Archive,
  {
    /** The bytes of a ZIP; a reader that stops stops the entries too. */
    zip<E>(entries: Stream.Stream<ArchiveEntry<E>, E>): Stream.Stream<Uint8Array, E | ArchiveFailed>
  }
>()("alk/Archive") {}
