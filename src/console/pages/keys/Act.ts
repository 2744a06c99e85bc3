/** What a person does with a button or a form: one at a time, with what it failed with. */
import { useSignal } from "@preact/signals"
import { failureOf } from "../../api/Answer.ts"
import type { ApiFailure } from "../../api/Client.ts"

/** Runs one act at a time; what it fails with is shown. */
export const useAct = () => {
  const failure = useSignal<ApiFailure | undefined>(undefined)
  const isBusy = useSignal(false)
  const run = async (act: () => Promise<void>): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    failure.value = undefined
    try {
      await act()
    } catch (error) {
      failure.value = failureOf(error)
    } finally {
      isBusy.value = false
    }
  }
  return { failure, isBusy, run }
}
