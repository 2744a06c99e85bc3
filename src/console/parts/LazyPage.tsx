/** Pages whose code is loaded when they are first shown, or by `loadPages` before. */
import { useSignal } from "@preact/signals"
import type { ComponentType } from "preact"
import { useEffect } from "preact/hooks"
import { ApiFailure } from "../api/Client.ts"
import { Failure, Loading } from "./Basics.tsx"

type Load<Props> = () => Promise<ComponentType<Props>>

/** After an upgrade the service has files of other names; only a new document knows them. */
const failureOf = (cause: unknown): ApiFailure =>
  new ApiFailure(
    0,
    "not_loaded",
    `This page can't be loaded (${String(cause)}). Check that the service runs, then try again.`
  )

/** All of them, for `loadPages`. */
const loads: Array<() => Promise<unknown>> = []

/** A page out of the module that `load` imports. */
export const lazyPage = <Props extends object>(load: Load<Props>): ComponentType<Props> => {
  let Page: ComponentType<Props> | undefined
  const loadPage = async () => {
    Page ??= await load()
    return Page
  }
  loads.push(loadPage)
  return (props) => {
    const failure = useSignal<ApiFailure | undefined>(undefined)
    const isThere = useSignal(Page !== undefined)
    useEffect(() => {
      loadPage().then(
        () => {
          isThere.value = true
        },
        (cause) => {
          failure.value = failureOf(cause)
        }
      )
    }, [])
    if (isThere.value && Page !== undefined) return <Page {...props} />
    if (failure.value === undefined) return <Loading what="the page" />
    return <Failure failure={failure.value} retry={() => location.reload()} />
  }
}

/** Loads every page, so that none has to be waited for; opening one that failed shows why. */
export const loadPages = (): void => {
  for (const load of loads) load().catch(() => undefined)
}
