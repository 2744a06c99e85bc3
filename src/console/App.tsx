/** The console: signs in, then shows the page that the address names. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { LocationProvider, Route, Router } from "preact-iso/router"
import { ApiFailure } from "./api/Client.ts"
import { NotFound } from "./pages/NotFound.tsx"
import { SignIn } from "./pages/SignIn.tsx"
import { Failure, Loading } from "./parts/Basics.tsx"
import { lazyPage, loadPages } from "./parts/LazyPage.tsx"
import { readable } from "./parts/Readable.tsx"
import { Shell } from "./Shell.tsx"
import { askSession, signedIn, signIn } from "./state/Session.ts"

const ChainPage = lazyPage(async () => (await import("./pages/chain/Chain.tsx")).ChainPage)
const Events = readable(
  "Events",
  lazyPage(async () => (await import("./pages/events/Events.tsx")).Events)
)
const Evidence = readable(
  "Evidence",
  lazyPage(async () => (await import("./pages/evidence/Evidence.tsx")).Evidence)
)
const ExecutionPage = readable(
  "Execution",
  lazyPage(async () => (await import("./pages/executions/Execution.tsx")).ExecutionPage)
)
const Executions = readable(
  "Executions",
  lazyPage(async () => (await import("./pages/executions/Executions.tsx")).Executions)
)
const Health = lazyPage(async () => (await import("./pages/health/Health.tsx")).Health)
const KeysPage = lazyPage(async () => (await import("./pages/keys/Keys.tsx")).KeysPage)
const Live = readable(
  "Live",
  lazyPage(async () => (await import("./pages/events/Live.tsx")).Live)
)
const Overview = readable(
  "Overview",
  lazyPage(async () => (await import("./pages/Overview.tsx")).Overview)
)
const Receipts = lazyPage(async () => (await import("./pages/receipts/Receipts.tsx")).Receipts)
const Settings = lazyPage(async () => (await import("./pages/settings/Settings.tsx")).Settings)
const Start = lazyPage(async () => (await import("./pages/Onboarding.tsx")).Onboarding)
const SharePage = lazyPage(async () => (await import("./pages/share/Share.tsx")).SharePage)

/** Milliseconds after signing in until the other pages are loaded: the first one comes first. */
const OTHER_PAGES_MS = 1_000

/** The one-time code of the address, which forgets it at once. */
const takeCode = (): string | undefined => {
  const code = /^#code=(.+)$/.exec(location.hash)?.[1]
  if (code !== undefined) history.replaceState(null, "", location.pathname + location.search)
  return code
}

const begin = async (): Promise<void> => {
  const code = takeCode()
  if (code === undefined) return askSession()
  try {
    await signIn({ code })
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status === 0) throw error
    await askSession(error.message)
  }
}

const SHARE_PATH = "/share"

export const App = () => (location.pathname === SHARE_PATH ? <SharePage /> : <Console />)

const Console = () => {
  const failure = useSignal<ApiFailure | undefined>(undefined)
  const start = () => {
    failure.value = undefined
    begin().catch((error) => {
      failure.value = error instanceof ApiFailure ? error : new ApiFailure(0, "", String(error))
    })
  }
  useEffect(start, [])
  const { value } = signedIn
  const isIn = value.is === "in"
  useEffect(() => {
    if (!isIn) return undefined
    const timer = setTimeout(loadPages, OTHER_PAGES_MS)
    return () => clearTimeout(timer)
  }, [isIn])
  if (value.is === "leaving") {
    return (
      <main class="sign-in" id="content">
        <h1>alk</h1>
        <p role="status">Signing out …</p>
      </main>
    )
  }
  if (value.is === "asking") {
    return (
      <main class="sign-in" id="content">
        <h1>alk</h1>
        {failure.value === undefined ? (
          <Loading what="the console" />
        ) : (
          <Failure failure={failure.value} retry={start} />
        )}
      </main>
    )
  }
  if (value.is === "out") return <SignIn reason={value.reason} />
  return (
    <LocationProvider>
      <Shell session={value.session}>
        <Router>
          <Route path="/" component={Overview} />
          <Route path="/events" component={Events} />
          <Route path="/live" component={Live} />
          <Route path="/executions" component={Executions} />
          <Route path="/executions/:id" component={ExecutionPage} />
          <Route path="/chain" component={ChainPage} />
          <Route path="/evidence" component={Evidence} />
          <Route path="/receipts" component={Receipts} />
          <Route path="/receipts/:id" component={Receipts} />
          <Route path="/health" component={Health} />
          <Route path="/keys" component={KeysPage} />
          <Route path="/settings" component={Settings} />
          <Route path="/start" component={Start} />
          <Route path="/sign-in" component={Overview} />
          <Route default component={NotFound} />
        </Router>
      </Shell>
    </LocationProvider>
  )
}
