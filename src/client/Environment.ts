/**
 * What the runtime has beside the web's own interfaces: variables, exit hooks, a context that follows
 * asynchronous calls. Looked up where it exists, so that nothing is imported that a browser lacks.
 */

/** The part of `process` that is used; Node, Bun and Deno have it. */
interface Process {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly on?: (event: string, listener: () => void) => unknown
  readonly getBuiltinModule?: (name: string) => unknown
}

/** A value that follows the calls which are made from a function, asynchronous ones too. */
export interface AsyncContext<A> {
  readonly getStore: () => A | undefined
  readonly run: <B>(value: A, body: () => B) => B
}

type AsyncContextClass = new <A>() => AsyncContext<A>

const process: Process | undefined = (globalThis as { readonly process?: Process }).process

/** A variable of the environment; undefined where it is not set, or where there are none. */
export const variable = (name: string): string | undefined => {
  try {
    const value = process?.env?.[name]
    return value === "" ? undefined : value
  } catch {
    // Deno asks for a permission that it was not given.
    return undefined
  }
}

/** A module of the runtime; undefined in browsers, and in Node before 20.16. */
export const builtinModule = (name: string): unknown => process?.getBuiltinModule?.(name)

const asyncContextClass = (): AsyncContextClass | undefined => {
  const { AsyncLocalStorage } = (builtinModule("node:async_hooks") ?? globalThis) as {
    readonly AsyncLocalStorage?: AsyncContextClass
  }
  return AsyncLocalStorage
}

/** Undefined where the runtime has none. */
export const makeAsyncContext = <A>(): AsyncContext<A> | undefined => {
  const Class = asyncContextClass()
  return Class === undefined ? undefined : new Class<A>()
}

/** Node and Bun have timers with a method, Deno a function for them; in a browser nothing waits. */
export const letEnd = (timer: unknown): void => {
  const { Deno } = globalThis as { readonly Deno?: { readonly unrefTimer?: (id: unknown) => void } }
  if (typeof timer === "number") Deno?.unrefTimer?.(timer)
  else (timer as { readonly unref?: () => void }).unref?.()
}

/** What is called when the runtime is about to end. */
export interface ExitHooks {
  /** Nothing is left to do: what is begun now keeps the program alive. */
  readonly idle: () => void
  /** The program ends now; nothing asynchronous happens any more. */
  readonly end: () => void
  /** The page is hidden, and may never be shown again. */
  readonly hidden: () => void
}

const watching = new Set<ExitHooks>()
let isWatching = false

const callAll = (name: keyof ExitHooks) => () => {
  for (const hooks of watching) hooks[name]()
}

const { document } = globalThis as {
  readonly document?: EventTarget & { readonly visibilityState: string }
}

/** True for a hidden page, which may be closed at any moment. */
export const isPageHidden = (): boolean => document?.visibilityState === "hidden"

const watch = (): void => {
  isWatching = true
  process?.on?.("beforeExit", callAll("idle"))
  process?.on?.("exit", callAll("end"))
  document?.addEventListener("visibilitychange", () => {
    if (isPageHidden()) callAll("hidden")()
  })
}

/** Call the hooks until the returned function is called; one listener serves all clients. */
export const onExit = (hooks: ExitHooks): (() => void) => {
  if (!isWatching) watch()
  watching.add(hooks)
  return () => watching.delete(hooks)
}
