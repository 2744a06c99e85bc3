/**
 * The client generators work with the compiler API of TypeScript 5, which version 7 no longer has:
 * for them alone, `typescript` is the one that is installed as `typescript5`. Loaded by --import.
 */
import { registerHooks } from "node:module"

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === "typescript" ? "typescript5" : specifier, context)
})
