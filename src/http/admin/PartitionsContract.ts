/**
 * The routes of the number of partitions. Says nothing of how topics get more.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { partitionedTopics } from "../../domain/records/Topics.ts"
import { PARTITIONS_MAX } from "../../domain/registry/RegistryEntry.ts"
import { integerInput, mustBe, optionalInput } from "../contract/Bodies.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { operation } from "../contract/Operation.ts"
import { AdminAuthorization } from "../server/Authorization.ts"

const fields = {
  partitions: Schema.Int.annotate({ description: "Partitions that every process works on." }),
  counts: Schema.Array(Schema.Int).annotate({
    description:
      "Numbers of partitions over which new tenants were spread, the first number first; the last one "
      + "holds for tenants that are made now. A tenant stays where it was put."
  }),
  growing_to: Schema.optionalKey(
    Schema.Int.annotate({
      description: "A growth to this number has begun and not ended: ask for it again."
    })
  ),
  topics: Schema.Array(
    Schema.Struct({ topic: Schema.Literals(partitionedTopics), partitions: Schema.Int })
  ).annotate({ description: "What the brokers say of each topic." })
}

const topics = partitionedTopics.map((topic) => ({ topic, partitions: 8 }))

const Partitions = Schema.Struct(fields).annotate({
  identifier: "PartitionCounts",
  examples: [{ partitions: 8, counts: [4, 8], topics }]
})

const AddedPartitions = Schema.Struct({
  ...fields,
  state: Schema.Literals(["planned", "waiting", "done"]).annotate({
    description:
      "`planned`: nothing was done, as it was asked for. `waiting`: new partitions are not worked on "
      + "yet; ask again. `done`: new tenants are spread over all of them."
  }),
  waiting_for: Schema.Array(Schema.Int).annotate({
    description: "Partitions that no sequencer, or no projection, works on yet."
  })
}).annotate({
  identifier: "AddedPartitions",
  examples: [{ state: "done", partitions: 8, counts: [4, 8], topics, waiting_for: [] }]
})

export const PartitionsInput = Schema.Struct({
  to: integerInput(PARTITIONS_MAX).annotateKey({
    description: "Partitions that each topic has afterwards."
  }),
  dry_run: optionalInput(mustBe("true or false", Schema.Boolean)).annotateKey({
    description: "Only say whether it can be done."
  })
}).annotate({ identifier: "PartitionsInput", examples: [{ to: 8, dry_run: true }] })

const showPartitions = HttpApiEndpoint.get("showPartitions", "/v1/admin/partitions", {
  success: Partitions,
  error: errorsOf("object", 401, 429, 503)
}).pipe(
  operation({
    summary: "How many partitions there are",
    description: "Of each topic but `alk.registry`, which has one."
  })
)

const addPartitions = HttpApiEndpoint.post("addPartitions", "/v1/admin/partitions", {
  payload: PartitionsInput,
  success: AddedPartitions,
  error: errorsOf("object", 400, 401, 409, 413, 415, 429, 503)
}).pipe(
  operation({
    summary: "Add partitions",
    description:
      "Gives each topic more partitions while the service runs. Tenants stay where they are, new ones "
      + "are spread over all. Repeat it until it is `done`; after a failure it goes on where it was. It "
      + "can't be undone. 400 for fewer than there are, and for another number while a growth is under "
      + "way. In the log of `_system`: `partitions.growth_begun`, `partitions.added`, "
      + "`partitions.growth_completed`."
  })
)

/** The routes of the number of partitions, for the admin token. */
export class PartitionsApi extends HttpApiGroup.make("Partitions")
  .add(showPartitions, addPartitions)
  .middleware(AdminAuthorization)
  .annotateMerge(OpenApi.annotations({ description: "How many partitions the topics have." })) {}
