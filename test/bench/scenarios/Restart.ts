/** Starts after a kill -9, with a small store and with the large one, and what memory it holds. */
import { eventText } from "../harness/Events.ts"
import { LARGE_TENANT, type LargeStore } from "../harness/LargeStore.ts"
import { bodiesOf, pathOf, sendWhile } from "../harness/Load.ts"
import { Program } from "../harness/Programs.ts"
import { sizeText } from "../harness/Samples.ts"
import { type Bench, inTurn, type LargeScenario, type PlainScenario } from "../Scenario.ts"

const SMALL_EVENTS = 4_000
const TENANT = "restart"

interface Restart {
  /** Seconds until it says that it is ready. */
  readonly ready: number
  /** Seconds until a synchronous event is answered. */
  readonly answered: number
}

/** Kills it, starts it again, and checks that every event is there. */
const restart = async (program: Program, tenant: string): Promise<Restart> => {
  const before = await program.api(tenant).total()
  await program.kill()
  const started = performance.now()
  await program.start()
  const ready = (performance.now() - started) / 1_000
  const api = program.api(tenant)
  await api.json(pathOf({ batch: 1, sync: true }), { body: eventText(1) })
  const answered = (performance.now() - started) / 1_000
  const after = await api.total()
  if (after !== before + 1) throw new Error(`${before} events before the kill, ${after} after it`)
  return { ready, answered }
}

const record = (
  { recorder }: Bench,
  name: string,
  { answered, ready }: Restart,
  goal: number | undefined,
  of: "this" | "against" = "this"
): void => {
  recorder.add(`${name}: ready`, "s", ready, goal === undefined ? { of } : { of, goal })
  recorder.add(`${name}: first synchronous event answered`, "s", answered, { of })
}

const smallName = `${SMALL_EVENTS.toLocaleString("en-US")} events`

export const restartSmall: PlainScenario = {
  name: "restart",
  title: "Start after kill -9",
  about: () =>
    `From the start of the process until it says that it is ready, and until one synchronous event `
    + `is answered. The program was killed with ${smallName} in the store, its broker ends with it and is `
    + `waited for; all events have to be there again.`,
  run: async (bench) => {
    await inTurn(bench, async (subject, run) => {
      bench.say(`run ${run + 1} of ${bench.options.runs}`)
      const program = await Program.start(subject, { tenants: [TENANT] })
      try {
        const shape = { batch: 1_000, size: "400 bytes", sync: false, clients: 4 } as const
        const bodies = bodiesOf(shape)
        const body = (n: number) => bodies[n % bodies.length]!
        const less = (sent: number) => sent < SMALL_EVENTS
        await sendWhile([program.api(TENANT)], shape, body, less)
        record(bench, smallName, await restart(program, TENANT), 6, subject.name)
      } finally {
        await program.stop()
      }
    })
  }
}

const BIG_SIZE = 10e6
const MEMORY_MAX = 1_200

/** Memory after whatever was measured before, then after the restart. */
const runAt = async (bench: Bench, store: LargeStore, size: number): Promise<void> => {
  const { options, recorder, say } = bench
  const at = sizeText(size)
  const goalAt = <Goal>(goal: Goal) => (size === BIG_SIZE ? { goal } : {})
  for (let run = 0; run < options.runs; run++) {
    say(`run ${run + 1} of ${options.runs}`)
    const program = await store.program()
    const { broker, program: own, programMost } = program.memory()
    // The first look is at a program that has measured the other scenarios; later ones at a young one.
    if (run === 0) {
      recorder.add(`${at}: memory of the program`, "MB", own, goalAt(MEMORY_MAX))
      recorder.add(`${at}: memory of the program, most`, "MB", programMost)
      recorder.add(`${at}: memory of the broker`, "MB", broker)
    }
    const goal = size === BIG_SIZE ? 8 : undefined
    record(bench, at, await restart(program, LARGE_TENANT), goal)
  }
}

export const restartLarge: LargeScenario = {
  name: "restart-large",
  title: "Start after kill -9 and memory, large store",
  about: () =>
    "As above, with the large store. Memory is what the processes hold (VmRSS; the most: VmHWM) "
    + "after the scenarios before this one, in the program that has answered them.",
  runAt
}
