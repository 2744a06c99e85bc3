/**
 * Asks the API with the token of a share link and with nothing else: no cookie is sent or taken, and
 * the token is in the header only. The only place of the console that sends a token.
 */

import type { VerifyProgress, VerifyReport } from "../../client/gen/Api.d.ts"
import { jsonLines, NDJSON_TYPE } from "../../client/JsonLines.ts"
import { failureOfResponse } from "../../client/Transport.ts"
import { parseJson } from "../../domain/json/Json.ts"
import { ApiFailure, unreachable } from "./Client.ts"

/** Tokens have this form; nothing else is sent. */
const TOKEN = /^shr_[0-9A-Za-z]{43}$/

export const isToken = (text: string): boolean => TOKEN.test(text)

/** How a link has ended, as the service says it to those who have its token. */
export type LinkEnd = "expired" | "revoked" | "used_up" | "unknown"

/** The token opens nothing (any more). */
export class LinkEnded extends ApiFailure {
  readonly end: LinkEnd

  constructor(end: LinkEnd, { code, message, requestId, status }: ApiFailure) {
    super(status, code, message, { requestId })
    this.end = end
  }
}

const END = /error_description="(expired|revoked|used_up)"/

const refusalOf = async (response: Response): Promise<ApiFailure> => {
  const failure = await failureOfResponse(response)
  if (response.status !== 401) return failure
  const end = END.exec(response.headers.get("www-authenticate") ?? "")?.[1] as LinkEnd | undefined
  return new LinkEnded(end ?? "unknown", failure)
}

const ask = async (
  token: string,
  path: string,
  accept: string,
  signal: AbortSignal
): Promise<Response> => {
  const request = {
    headers: { accept, authorization: `Bearer ${token}` },
    credentials: "omit",
    cache: "no-store",
    signal
  } as const
  const response = await fetch(path, request).catch((error) => {
    throw signal.aborted ? error : unreachable()
  })
  if (!response.ok) throw await refusalOf(response)
  return response
}

const brokenOff = new ApiFailure(
  0,
  "unreachable",
  "the answer broke off; the service may be restarting, or the network is down"
)

/** What has come of an answer, part by part. */
async function* partsOf(response: Response, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = response.body!.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } catch (error) {
    throw signal.aborted ? error : brokenOff
  }
}

/** The JSON of a path. Throws ApiFailure. */
export const askShared = async <A>(
  token: string,
  path: string,
  signal: AbortSignal
): Promise<A> => {
  const response = await ask(token, path, "application/json", signal)
  return parseJson(await response.text()) as A
}

/** The verdict on what the link covers; `onProgress` is told about every second. Throws ApiFailure. */
export const verifyShared = async (
  token: string,
  signal: AbortSignal,
  onProgress: (progress: VerifyProgress) => void
): Promise<VerifyReport> => {
  const response = await ask(token, "/v1/share/verify", NDJSON_TYPE, signal)
  try {
    for await (const line of jsonLines(response, signal)) {
      const said = line as VerifyProgress | VerifyReport
      if ("status" in said) return said
      onProgress(said)
    }
  } catch (error) {
    throw signal.aborted ? error : brokenOff
  }
  throw brokenOff
}

/** A file that the link hands out. */
export interface SharedFile {
  readonly name: string
  readonly blob: Blob
}

/** `filename` of Content-Disposition; the service writes plain letters only. */
const nameOf = (response: Response, otherwise: string): string =>
  /filename="([\w.-]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? otherwise

/** Downloads a document, which counts as a use; `onBytes` is told how many have come. */
export const downloadShared = async (
  token: string,
  path: string,
  signal: AbortSignal,
  onBytes: (bytes: number) => void
): Promise<SharedFile> => {
  const response = await ask(token, path, "*/*", signal)
  const type = response.headers.get("content-type") ?? ""
  const parts: Array<Uint8Array<ArrayBuffer>> = []
  let bytes = 0
  for await (const part of partsOf(response, signal)) {
    parts.push(part as Uint8Array<ArrayBuffer>)
    bytes += part.length
    onBytes(bytes)
  }
  const name = nameOf(response, path.endsWith("pdf") ? "shared.pdf" : "shared.zip")
  return { name, blob: new Blob(parts, { type }) }
}
