/** The archive port on ZIP files; what writes and what reads them stands beside this file. */
import { Effect, Layer } from "effect"
import { Archive, ArchiveUnreadable } from "../../ports/Archive.ts"
import { readArchive } from "./ZipReader.ts"
import { zip } from "./ZipWriter.ts"

/** ZIP files written with archiver and read with yauzl. */
export const layerArchive: Layer.Layer<Archive> = Layer.succeed(Archive, {
  zip,
  read: (path) =>
    Effect.acquireRelease(
      Effect.tryPromise({
        try: () => readArchive(path),
        catch: (cause) => {
          if (cause instanceof ArchiveUnreadable) return cause
          throw cause
        }
      }),
      ({ close }) => Effect.sync(close)
    ).pipe(Effect.map(({ reader }) => reader))
})
