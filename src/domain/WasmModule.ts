/**
 * Makes instances of the modules that are compiled of AssemblyScript (src/tools/WasmModules.ts),
 * for as long as V8 can run them.
 */

/** The part of WebAssembly that is used; only the types of browsers declare it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Buffer) => object
  readonly Instance: new (module: object) => { readonly exports: unknown }
}

/** A variable or constant that a module exports. */
export interface Exported {
  readonly value: number
}

/** What every module exports. */
export interface WithMemory {
  readonly memory: { readonly buffer: ArrayBuffer }
}

/**
 * What a new instance of a module exports.
 * @throws Error where V8 can't run it, such as on processors without its instructions
 */
export const instantiate = <Exports extends WithMemory>(base64: string): Exports => {
  const module = new WebAssembly.Module(Buffer.from(base64, "base64"))
  return new WebAssembly.Instance(module).exports as Exports
}

/** Gives what `make` makes, which it does once, when first asked; undefined if it throws. */
export const madeOnce = <A>(make: () => A): (() => A | undefined) => {
  let made: A | undefined
  let isTried = false
  return () => {
    if (!isTried) {
      isTried = true
      try {
        made = make()
      } catch {
        // Asked once: what can't be made now can't be made later.
      }
    }
    return made
  }
}
