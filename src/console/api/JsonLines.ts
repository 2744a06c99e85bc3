/** An answer of many lines of JSON (NDJSON) with the browser's session, each as soon as it is there. */
import { jsonLines as linesOf, NDJSON_TYPE } from "../../client/JsonLines.ts"
import { ask, type CallOptions } from "./Client.ts"

export { cutOff } from "../../client/JsonLines.ts"

/** The lines of an answer. Throws ApiFailure, or AbortError when it is given up. */
export const jsonLines = async function* (
  path: string,
  options: CallOptions = {}
): AsyncGenerator<unknown, void> {
  yield* linesOf(await ask(path, { ...options, accept: NDJSON_TYPE }), options.signal)
}
