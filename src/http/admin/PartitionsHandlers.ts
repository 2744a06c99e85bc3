/** Serves the routes of the number of partitions. What may be done is decided by PartitionGrowth. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { defined } from "../../domain/Defined.ts"
import {
  PartitionGrowth,
  type PartitionsShown
} from "../../services/administration/PartitionGrowth.ts"
import { Api } from "../Api.ts"
import { BODY_BYTES_MAX, bodyOf } from "../contract/Bodies.ts"
import { json } from "../messages/Answer.ts"
import { refusable } from "../messages/ApiError.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { PartitionsInput } from "./PartitionsContract.ts"

const readInput = bodyOf(PartitionsInput, "a number of partitions")

const shown = ({ counts, growingTo, partitions, topics }: PartitionsShown) => ({
  partitions,
  counts,
  ...defined({ growing_to: growingTo }),
  topics
})

/** The handlers of PartitionsApi. */
export const layerPartitionsHandlers = HttpApiBuilder.group(
  Api,
  "Partitions",
  Effect.fnUntraced(function* (handlers) {
    const growth = yield* PartitionGrowth
    return handlers
      .handle("showPartitions", () => Effect.map(growth.show, shown))
      .handleRaw(
        "addPartitions",
        Effect.fnUntraced(function* ({ request }) {
          const { bytes } = yield* readBody(request, [JSON_TYPE], BODY_BYTES_MAX)
          const { dry_run, to } = yield* refusable(() => readInput(bytes))
          if (dry_run === true) {
            return json({ state: "planned", ...shown(yield* growth.check(to)), waiting_for: [] })
          }
          const { waitingFor, ...now } = yield* growth.add(to)
          const state = waitingFor.length === 0 ? "done" : "waiting"
          return json({ state, ...shown(now), waiting_for: waitingFor })
        })
      )
  })
)
