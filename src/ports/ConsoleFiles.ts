/**
 * The program that the console is in a browser, as files: made when it is first opened. Knows no
 * address and no header.
 */
import { Context, type Effect, Schema } from "effect"

/** The files can't be made; `message` says why. */
export class ConsoleUnavailable extends Schema.TaggedError<ConsoleUnavailable>()(
  "ConsoleUnavailable",
  { message: Schema.String }
) {}

/** Files by name. Names hold a digest of the content, so a name always means the same bytes. */
export interface ConsoleBundle {
  readonly files: ReadonlyMap<string, string>
  /** Names of the module that starts the console, of its styles and of the modules it begins with. */
  readonly entry: string
  readonly styles: string
  readonly preloads: ReadonlyArray<string>
  /** Name of the module that places the nodes of graphs, beside the page. */
  readonly layoutWorker: string
  /** Name of the module that checks evidence packs, beside the page. */
  readonly packWorker: string
}

export class ConsoleFiles extends Context.Service<
  ConsoleFiles,
  {
    /** The same at every call. */
    readonly bundle: Effect.Effect<ConsoleBundle, ConsoleUnavailable>
  }
>()("alk/ConsoleFiles") {}
