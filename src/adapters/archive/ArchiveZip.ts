/** The archive port on ZIP files; what writes them stands beside this file. */
import { Layer } from "effect"
import { Archive } from "../../ports/Archive.ts"
import { zip } from "./ZipWriter.ts"

/** ZIP files written with archiver. */
export const layerArchive: Layer.Layer<Archive> = Layer.succeed(Archive, { zip })
