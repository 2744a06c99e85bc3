/**
 * One running Chromium: started shut off from the network and from this program's environment, and
 * ended with its scope whatever state it is in. Prints no documents itself.
 */
import { tmpdir } from "node:os"
import { Effect, type Scope } from "effect"
import { type Browser, chromium, errors } from "playwright-core"
import { PdfUnavailable } from "../../ports/PdfRenderer.ts"
import { type Candidate, type ChromiumSettings, candidatesOf } from "./FindChromium.ts"

/** Page margin boxes (running header and footer in CSS) came with this version. */
const VERSION_MIN = 131
const START_MS_MAX = 30_000
const STOP_MS_MAX = 5_000

/** The browser requests nothing by itself, and resolves no name. */
const SEALED = [
  "--host-resolver-rules=MAP * ~NOTFOUND",
  "--proxy-server=http://0.0.0.0:1",
  "--proxy-bypass-list=<-loopback>",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-domain-reliability",
  "--disable-gpu",
  "--no-pings"
]
/** The same line breaks on every machine. */
const SAME_LAYOUT = ["--font-render-hinting=none", "--force-color-profile=srgb", "--lang=en-US"]

const WAY_OUT =
  "install Chromium (Debian: apt-get install chromium, macOS: brew install --cask chromium) or set "
  + `CHROMIUM_PATH to one of version ${VERSION_MIN} or newer`

export interface RunningBrowser {
  readonly browser: Browser
  /** Why it has no sandbox, if it was meant to have one. */
  readonly unsandboxed: string | undefined
  /** Documents that it has begun; counted by the caller. */
  printed: number
}

/** Rejects when the browser goes away, which not every call on a browser does by itself. */
export const whileConnected = <A>(browser: Browser, work: Promise<A>): Promise<A> => {
  let leave = (): void => undefined
  const gone = new Promise<never>((_, reject) => {
    leave = () => reject(new Error("the browser has ended"))
    browser.once("disconnected", leave)
    if (!browser.isConnected()) leave()
  })
  return Promise.race([work, gone]).finally(() => browser.off("disconnected", leave))
}

/** A root user's Chromium refuses to start with its sandbox. */
const isRoot = (): boolean => process.getuid?.() === 0

const launch = async (candidate: Candidate, sandbox: boolean): Promise<Browser> => {
  const { environment, path } = await candidate.program()
  const browser = await chromium.launch({
    executablePath: path,
    headless: true,
    chromiumSandbox: sandbox,
    args: [...SEALED, ...SAME_LAYOUT],
    timeout: START_MS_MAX,
    // Signals belong to the program, which ends the browser with its scope.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
    env: {
      ...environment,
      PATH: process.env["PATH"] ?? "",
      HOME: tmpdir(),
      TMPDIR: tmpdir(),
      TZ: "UTC",
      LANG: "C.UTF-8"
    }
  })
  const version = browser.version()
  if (Number.parseInt(version, 10) >= VERSION_MIN) return browser
  await browser.close()
  throw new Error(`it is version ${version}, and ${VERSION_MIN} is the oldest that will do`)
}

/**
 * Chromium now and then crashes while it starts and starts well a moment later, seen on a loaded
 * machine. A program that is no browser, or too old, fails in the same way both times.
 */
const launchTwice = (candidate: Candidate, sandbox: boolean): Promise<Browser> =>
  launch(candidate, sandbox).catch((cause: unknown) => {
    if (cause instanceof errors.TimeoutError) throw cause
    return launch(candidate, sandbox)
  })

/** A browser, and why it has no sandbox if it was meant to have one. */
interface Launched extends Pick<RunningBrowser, "browser" | "unsandboxed"> {}

const ROOT_REASON = "root's Chromium has none: run the service as another user"
const NO_SANDBOX_REASON =
  "it starts only without: allow unprivileged user namespaces (sysctl "
  + "kernel.unprivileged_userns_clone=1, in a container its seccomp profile)"

const firstLine = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).split("\n", 1)[0] ?? ""

/** With its sandbox where the machine lets it have one (containers often don't). */
const launchSafest = async (
  candidate: Candidate,
  sandbox: ChromiumSettings["sandbox"] = "auto"
): Promise<Launched> => {
  if (sandbox === "off") {
    return { browser: await launchTwice(candidate, false), unsandboxed: undefined }
  }
  if (isRoot()) {
    if (sandbox === "required") throw new Error(`ALK_CHROMIUM_SANDBOX=required, but ${ROOT_REASON}`)
    return { browser: await launchTwice(candidate, false), unsandboxed: ROOT_REASON }
  }
  try {
    return { browser: await launchTwice(candidate, true), unsandboxed: undefined }
  } catch (cause) {
    if (sandbox === "required") {
      throw new Error(`ALK_CHROMIUM_SANDBOX=required, and with it: ${firstLine(cause)}`)
    }
    const browser = await launchTwice(candidate, false)
    return { browser, unsandboxed: NO_SANDBOX_REASON }
  }
}

const launchAny = async (settings: ChromiumSettings): Promise<Launched> => {
  const refusals: Array<string> = []
  for (const candidate of await candidatesOf(settings)) {
    try {
      return await launchSafest(candidate, settings.sandbox)
    } catch (cause) {
      refusals.push(`${candidate.name}: ${firstLine(cause)}`)
    }
  }
  throw new PdfUnavailable({
    message: `no Chromium can print here (${refusals.join("; ")}): ${WAY_OUT}`
  })
}

/** The operating system's number of the browser's process, for when it no longer listens. */
const processIdOf = async (browser: Browser): Promise<number | undefined> => {
  const session = await browser.newBrowserCDPSession()
  const { processInfo } = await session.send("SystemInfo.getProcessInfo")
  await session.detach()
  return processInfo.find(({ type }) => type === "browser")?.id
}

const closeOrKill = (browser: Browser, pid: number | undefined): Effect.Effect<void> =>
  Effect.promise(() => browser.close().catch(() => undefined)).pipe(
    Effect.timeoutOption(STOP_MS_MAX),
    Effect.andThen(
      Effect.sync(() => {
        if (pid === undefined || !browser.isConnected()) return
        try {
          process.kill(pid, "SIGKILL")
        } catch (cause) {
          if ((cause as NodeJS.ErrnoException).code !== "ESRCH") throw cause
        }
      })
    )
  )

/** A browser that lives as long as the scope. */
export const startBrowser = (
  settings: ChromiumSettings
): Effect.Effect<RunningBrowser, PdfUnavailable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const { browser, unsandboxed } = await launchAny(settings)
        const pid = await whileConnected(browser, processIdOf(browser))
        return { browser, pid, unsandboxed }
      },
      catch: (cause) =>
        cause instanceof PdfUnavailable
          ? cause
          : new PdfUnavailable({ message: `Chromium did not start: ${firstLine(cause)}` })
    }),
    ({ browser, pid }) => closeOrKill(browser, pid)
  ).pipe(
    Effect.map(({ browser, unsandboxed }): RunningBrowser => ({ browser, unsandboxed, printed: 0 }))
  )
