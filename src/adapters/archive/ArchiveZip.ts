/**
 * ZIP files through archiver: entries one after the other, each as fast as the reader of the
 * archive takes it. Dates, modes and compression are fixed, so the same entries give the same
 * bytes.
 */
import { once } from "node:events"
import { PassThrough } from "node:stream"
import { NodeStream } from "@effect/platform-node"
import { ZipArchive } from "archiver"
import { type Cause, Effect, Exit, Layer, Stream } from "effect"
import { Archive, type ArchiveEntry, ArchiveFailed } from "../../ports/Archive.ts"

/** The first moment that a ZIP can name: an archive's age is said inside it, not by its entries. */
const ENTRY_DATE = new Date("1980-01-01T00:00:00Z")
const FILE_MODE = 0o644
const PROGRAM_MODE = 0o755
const COMPRESSION_LEVEL = 6
/** Bytes that wait between the entries and the reader of the archive, at each of the two ends. */
const BUFFER_BYTES = 262_144

/** Hands a chunk over and waits until there is room again. */
const write = (sink: PassThrough, chunk: Uint8Array): Effect.Effect<void> =>
  Effect.suspend(() =>
    sink.write(chunk) || sink.destroyed
      ? Effect.void
      : Effect.callback<void>((resume) => {
          const done = () => resume(Effect.void)
          sink.once("drain", done)
          return Effect.sync(() => sink.off("drain", done))
        })
  )

const writeEntry = <E>(archive: ZipArchive, { content, isProgram, name }: ArchiveEntry<E>) =>
  Effect.suspend(() => {
    const sink = new PassThrough({ highWaterMark: BUFFER_BYTES })
    const written = once(archive, "entry")
    // It is awaited below; until then a failure of the archive is known by its own event.
    written.catch(() => {})
    archive.append(sink, {
      name,
      date: ENTRY_DATE,
      mode: isProgram ? PROGRAM_MODE : FILE_MODE
    })
    return Stream.runForEach(content, (chunk) => write(sink, chunk)).pipe(
      Effect.andThen(Effect.sync(() => void sink.end())),
      Effect.andThen(Effect.promise(() => written))
    )
  })

/** What ended the entries, on its way through Node's stream. */
class EntriesFailed<E> extends Error {
  readonly reason: Cause.Cause<E>

  constructor(reason: Cause.Cause<E>) {
    super("an entry of the archive failed")
    this.reason = reason
  }
}

/** The bytes of a ZIP of the entries. */
const zip = <E>(
  entries: Stream.Stream<ArchiveEntry<E>, E>
): Stream.Stream<Uint8Array, E | ArchiveFailed> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const archive = yield* Effect.acquireRelease(
        Effect.sync(
          () => new ZipArchive({ zlib: { level: COMPRESSION_LEVEL }, highWaterMark: BUFFER_BYTES })
        ),
        (opened) =>
          Effect.sync(() => {
            opened.abort()
            opened.destroy()
          })
      )
      // The reader below hears of failures; a listener of its own keeps late ones from the process.
      archive.on("error", () => {})
      const all = Stream.runForEach(entries, (entry) => writeEntry(archive, entry))
      yield* Effect.forkScoped(
        Effect.onExit(all, (exit) =>
          Effect.sync(() => {
            if (Exit.isFailure(exit)) archive.destroy(new EntriesFailed(exit.cause))
            else void archive.finalize().catch(() => {})
          })
        )
      )
      return NodeStream.fromReadable<Uint8Array, EntriesFailed<E> | ArchiveFailed>({
        evaluate: () => archive,
        // One read, one chunk: what is not asked for stays in the archive's own bounded buffer.
        chunkSize: 1,
        onError: (cause) => (cause instanceof EntriesFailed ? cause : new ArchiveFailed({ cause }))
      }).pipe(
        Stream.catch(
          (failure): Stream.Stream<never, E | ArchiveFailed> =>
            failure instanceof EntriesFailed
              ? Stream.failCause(failure.reason)
              : Stream.fail(failure)
        )
      )
    })
  )

/** ZIP files written with archiver. */
export const layerArchive: Layer.Layer<Archive> = Layer.succeed(Archive, { zip })
