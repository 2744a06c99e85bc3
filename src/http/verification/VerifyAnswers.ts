/** The report of a check as an answer: alone, or after lines of progress. */
import { Effect } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { VerifyReport } from "../../verify/Verifier.ts"
import { json, negotiated } from "../messages/Answer.ts"
import { NDJSON_TYPE } from "../messages/MediaTypes.ts"
import { reportTypes } from "./VerifyContract.ts"
import { type OnProgress, reportLines } from "./VerifyStream.ts"

/** Whether the client wants lines of progress before the report. */
export const wantsLines = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.map(negotiated(request, reportTypes, "a report comes"), (type) => type === NDJSON_TYPE)

/** The answer of a check, which is given where to say how far it has come. */
export const reportAnswer = <E, R>(
  inLines: boolean,
  check: (told: { readonly onProgress?: OnProgress }) => Effect.Effect<VerifyReport, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> =>
  inLines
    ? reportLines((onProgress) => check({ onProgress }))
    : Effect.map(check({}), (report) => json(report))
