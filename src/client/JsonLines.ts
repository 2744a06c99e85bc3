/**
 * An answer of many lines of JSON (NDJSON), each as soon as it is there. Says so when the answer is
 * cut; what the lines mean, and which of them has to be the last, their reader knows.
 */
import { parseJson } from "../domain/json/Json.ts"
import { ApiFailure } from "./ApiFailure.ts"

/** Media type of such answers. */
export const NDJSON_TYPE = "application/x-ndjson"

/** The connection ended before the answer did. */
export const cutOff = (cause?: unknown): ApiFailure =>
  new ApiFailure(0, "cut_off", "the connection ended before the answer was complete", { cause })

/** What has no line feed after it: a single JSON document, or a line that was cut. */
const lastLine = (text: string): unknown => {
  try {
    return parseJson(text)
  } catch (error) {
    throw cutOff(error)
  }
}

/**
 * The lines of an answer. Throws ApiFailure where it is cut, or what the body throws when `signal` has
 * given it up.
 */
export async function* jsonLines(
  response: Response,
  signal?: AbortSignal
): AsyncGenerator<unknown, void> {
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let rest = ""
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        throw signal?.aborted === true ? error : cutOff(error)
      })
      if (done) break
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) yield parseJson(line)
    }
  } finally {
    // A reader that stops early ends the answer.
    reader.cancel().catch(() => {})
  }
  if (rest !== "") yield lastLine(rest)
}
