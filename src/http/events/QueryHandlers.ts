/**
 * Serves one event and the statistics, and hands lists on. What is answered is the store's.
 */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { defined } from "../../domain/Defined.ts"
import { isClientId } from "../../domain/Identifiers.ts"
import { inReadTurn } from "../../domain/TenantTurns.ts"
import { EventStore, type StatsGroup } from "../../ports/EventStore.ts"
import { Api } from "../Api.ts"
import { jsonText, longJson } from "../messages/Answer.ts"
import { notFound } from "../messages/ApiError.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { makeListEvents } from "./EventLists.ts"

/** By two fields, a group has both keys beside the first. */
const shownGroup = ({ count, keys, numbers }: StatsGroup) => ({
  key: keys[0],
  ...(keys.length > 1 ? { keys } : {}),
  count,
  ...defined({ numbers })
})

/** The handlers of QueryApi. */
export const layerQueryHandlers = HttpApiBuilder.group(
  Api,
  "Query",
  Effect.fnUntraced(function* (handlers) {
    const store = yield* EventStore
    const projection = yield* ProjectionProgress
    const listEvents = yield* makeListEvents

    return handlers
      .handleRaw("listEvents", listEvents)
      .handle(
        "getEventStats",
        Effect.fnUntraced(function* ({ query }) {
          const { tenantId } = yield* CurrentPrincipal
          const { deduplicate } = yield* readableView(projection, tenantId)
          const stats = yield* inReadTurn(
            tenantId,
            store.stats({ tenantId, ...query }, deduplicate)
          )
          const { buckets, groups, missing, numbers, other, total } = stats
          return yield* longJson({
            groups: groups.map(shownGroup),
            other,
            buckets: buckets?.map(({ start, ...group }) => ({ start, ...shownGroup(group) })),
            missing,
            numbers,
            total
          })
        })
      )
      .handle(
        "getEventFacets",
        Effect.fnUntraced(function* ({ query }) {
          const { tenantId } = yield* CurrentPrincipal
          const { deduplicate } = yield* readableView(projection, tenantId)
          return yield* inReadTurn(tenantId, store.facets({ tenantId, ...query }, deduplicate))
        })
      )
      .handle(
        "getEvent",
        Effect.fnUntraced(function* ({ params: { id }, query }) {
          const { tenantId } = yield* CurrentPrincipal
          if (!isClientId(id)) return yield* notFound("event")
          const { deduplicate } = yield* readableView(projection, tenantId)
          const found = yield* store.byId(tenantId, id, query.sequence_number, deduplicate)
          const body = found?.body
          return body === undefined ? yield* notFound("event") : jsonText(body)
        })
      )
  })
)
