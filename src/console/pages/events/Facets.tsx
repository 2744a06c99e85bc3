/** Values of the fields and how many events have them; a click narrows the view to one. */

import type { EventFacets } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Failure, Loading } from "../../parts/Basics.tsx"
import { count } from "../../parts/Format.ts"
import { type EventsView, filterOf, pathWith } from "../../state/EventsView.ts"
import { chosenValues, toggleValue } from "../../state/Where.ts"

const fields = ["action", "outcome", "actor_type", "actor_id", "resource_type"] as const
const LIMIT = 8
/** Where there is room beside the list; elsewhere the values are folded above it. */
const WIDE = "(min-width: 55rem)"

export const fieldTitles: Readonly<Record<string, string>> = {
  timestamp: "Time",
  created_at: "Recorded",
  sequence_number: "No.",
  id: "Id",
  actor_id: "Actor",
  actor_type: "Actor type",
  actor_email: "E-mail",
  action: "Action",
  resource_type: "Resource type",
  resource_id: "Resource",
  resource_name: "Resource name",
  outcome: "Outcome"
}

type Facet = EventFacets["facets"][number]

const FacetOf = ({
  facet,
  toggle,
  where
}: {
  readonly facet: Facet
  readonly where: string
  readonly toggle: (field: string, value: string) => void
}) => {
  const chosen = chosenValues(where, facet.field)
  const absent = [...chosen].filter((value) => facet.groups.every(({ key }) => key !== value))
  const all = [...facet.groups, ...absent.map((key) => ({ key, count: undefined }))]
  if (all.length === 0) return null
  const beyond = facet.values - facet.groups.length
  return (
    <fieldset class="facet">
      <legend>{fieldTitles[facet.field]}</legend>
      {all.map((group) => (
        <label key={group.key}>
          <input
            type="checkbox"
            checked={chosen.has(group.key)}
            onChange={() => toggle(facet.field, group.key)}
          />
          <span class="value" title={group.key}>
            {group.key}
          </span>
          <span class="number faint">{group.count === undefined ? "" : count(group.count)}</span>
        </label>
      ))}
      {beyond > 0 ? <p class="faint">{count(beyond)} more</p> : undefined}
    </fieldset>
  )
}

/** Fields with one filter; a field that is narrowed shows what else could be chosen. */
const Group = ({
  fields: asked,
  filter,
  toggle,
  where
}: {
  readonly fields: ReadonlyArray<string>
  readonly filter: string
  readonly where: string
  readonly toggle: (field: string, value: string) => void
}) => {
  const facets = useAnswer<EventFacets>(
    pathWith("/v1/events/facets", filter, `fields=${asked.join()}&limit=${LIMIT}`)
  )
  if (facets.data === undefined) {
    return facets.failure === undefined ? (
      <Loading what="values" />
    ) : (
      <Failure failure={facets.failure} retry={facets.reload} />
    )
  }
  return (
    <>
      {facets.data.facets.map((facet) => (
        <FacetOf key={facet.field} facet={facet} where={where} toggle={toggle} />
      ))}
    </>
  )
}

export const Facets = ({
  change,
  now,
  view
}: {
  readonly view: EventsView
  readonly now: number
  readonly change: (where: string) => void
}) => {
  const { where } = view
  const toggle = (field: string, value: string) => change(toggleValue(where, field, value))
  const narrowed = fields.filter((field) => chosenValues(where, field).size > 0)
  const rest = fields.filter((field) => !narrowed.includes(field))
  /** The expression without the values that are chosen of a field. */
  const without = (field: string): string =>
    [...chosenValues(where, field)].reduce((text, value) => toggleValue(text, field, value), where)
  return (
    <details class="facets" open={matchMedia(WIDE).matches}>
      <summary>Values of the fields</summary>
      {narrowed.map((field) => (
        <Group
          key={field}
          fields={[field]}
          filter={filterOf({ ...view, where: without(field) }, now)}
          where={where}
          toggle={toggle}
        />
      ))}
      {rest.length === 0 ? undefined : (
        <Group fields={rest} filter={filterOf(view, now)} where={where} toggle={toggle} />
      )}
    </details>
  )
}
