/** The verdict of the service on a shared scope, with its progress. Uses nothing up. */
import { useCallback, useEffect, useState } from "preact/hooks"
import type { VerifyProgress, VerifyReport } from "../../client/gen/Api.d.ts"
import { failureOf } from "../api/Answer.ts"
import type { ApiFailure } from "../api/Client.ts"
import { verifyShared } from "../api/ShareClient.ts"

export type SharedVerdict =
  | { readonly is: "running"; readonly progress: VerifyProgress | undefined }
  | { readonly is: "failed"; readonly failure: ApiFailure }
  | { readonly is: "done"; readonly report: VerifyReport }

export const useSharedVerdict = (token: string): readonly [SharedVerdict, again: () => void] => {
  const [verdict, setVerdict] = useState<SharedVerdict>({ is: "running", progress: undefined })
  const [attempt, setAttempt] = useState(0)
  const again = useCallback(() => setAttempt((before) => before + 1), [])
  useEffect(() => {
    const controller = new AbortController()
    setVerdict({ is: "running", progress: undefined })
    const onProgress = (progress: VerifyProgress) => setVerdict({ is: "running", progress })
    verifyShared(token, controller.signal, onProgress).then(
      (report) => setVerdict({ is: "done", report }),
      (error) => {
        if (!controller.signal.aborted) setVerdict({ is: "failed", failure: failureOf(error) })
      }
    )
    return () => controller.abort()
  }, [token, attempt])
  return [verdict, again]
}
