/**
 * How many commands in quarantine are not settled, for `/metrics`. The topic is read again only
 * when it has grown or something was settled.
 */
import { Effect, Layer, Metric, Schedule } from "effect"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { gaugeOf } from "../../domain/metrics/Metrics.ts"
import { EventLog } from "../../ports/EventLog.ts"
import { QuarantineTopic } from "./QuarantineTopic.ts"

const openCommands = gaugeOf("alk_quarantine_open_commands")

const INTERVAL = "10 seconds"

/** Shows the number for as long as the layer is there. */
export const layerQuarantineWatch: Layer.Layer<
  never,
  never,
  EventLog | QuarantineTopic | RegistryView
> = Layer.effectDiscard(
  Effect.gen(function* () {
    const log = yield* EventLog
    const topic = yield* QuarantineTopic
    const view = yield* RegistryView
    let seen = ""
    let ids: ReadonlyArray<string> = []
    const look = Effect.gen(function* () {
      const places = Array.from({ length: log.partitions }, (_, partition) => ({
        topic: "quarantine" as const,
        partition
      }))
      const ends = (yield* log.ends(places)).join()
      if (ends !== seen) {
        ids = (yield* topic.all).commands.map(({ id }) => id)
        seen = ends
      }
      const registry = view.registry()
      const open = ids.filter((id) => registry.quarantineAct(id) === undefined)
      yield* Metric.update(openCommands, open.length)
    }).pipe(
      // The log says elsewhere that it does not answer; the number stays as it was.
      Effect.catchTag("LogUnavailable", (error) =>
        Effect.logDebug("the quarantine could not be counted", error)
      )
    )
    yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced(INTERVAL)))
  })
)
