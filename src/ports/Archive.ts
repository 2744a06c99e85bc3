/**
 * Files in one file: written as a stream, entry after entry, and read back entry by entry. Knows
 * nothing of what the files are; the same entries always give the same bytes.
 */
import { Context, Schema, type Effect, type Scope, type Stream } from "effect"

/** The archive could not be written. */
export class ArchiveFailed extends Schema.TaggedError<ArchiveFailed>()("ArchiveFailed", {
  cause: Schema.Defect()
}) {}

/** The archive can't be read; `message` says what is wrong with it. */
export class ArchiveUnreadable extends Schema.TaggedError<ArchiveUnreadable>()(
  "ArchiveUnreadable",
  { message: Schema.String }
) {}

/** Files of an archive that is read: a pack has fewer than a hundred. */
export const FILES_MAX = 1_000

/** One file on its way into an archive. */
export interface ArchiveEntry<E> {
  /** Path inside the archive. */
  readonly name: string
  /** May be run as a program. */
  readonly isProgram: boolean
  /** Read when the entries before it are written. */
  readonly content: Stream.Stream<Uint8Array, E>
}

/** The files of an archive that is open for reading. */
export interface ArchiveReader {
  readonly kind: "zip" | "folder"
  /** Each name once. */
  readonly names: ReadonlyArray<string>
  /** Names that stand in it more than once. */
  readonly duplicates: ReadonlyArray<string>
  /** The bytes of a file in chunks; the iteration throws ArchiveUnreadable. */
  open(name: string): AsyncIterable<Uint8Array>
}

export class Archive extends Context.Service<
  Archive,
  {
    /** The bytes of a ZIP; whoever stops reading stops the entries too. */
    zip<E>(
      entries: Stream.Stream<ArchiveEntry<E>, E>
    ): Stream.Stream<Uint8Array, E | ArchiveFailed>
    /** A ZIP or a folder on the disk, at most FILES_MAX files, open for as long as the scope. */
    read(path: string): Effect.Effect<ArchiveReader, ArchiveUnreadable, Scope.Scope>
  }
>()("alk/Archive") {}
