/** Events as they are committed. The page says so when the stream is cut, and goes on where it was. */
import { useEffect, useMemo, useRef } from "preact/hooks"
import { useLocation } from "preact-iso/router"
import type { Chain } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Ago, Empty, Failure, Loading, State } from "../../parts/Basics.tsx"
import { count, counted, shortTime } from "../../parts/Format.ts"
import { useRows } from "../../parts/Virtual.ts"
import { addressOf, filterOf, viewOf } from "../../state/EventsView.ts"
import { isCut, LIVE_MAX, LiveEvents, type LiveLine } from "../../state/LiveEvents.ts"
import { usePageKeys } from "../../state/PageKeys.ts"
import { zone } from "../../state/Preferences.ts"
import { EventRows, ROW_HEIGHT } from "./EventRows.tsx"
import { QueryBox } from "./QueryBox.tsx"

/** Events of the chain that the page begins with, as far as they match. */
const BEFORE = 50
/** A reader has scrolled so far. */
const READING_PX = 60

const StateOf = ({ live }: { readonly live: LiveEvents }) => {
  const state = live.stream.state.value
  switch (state.is) {
    case "connecting":
      return <State tone="plain">connecting</State>
    case "live":
      return live.isPaused.value ? (
        <State tone="plain">paused</State>
      ) : (
        <State tone="good">live</State>
      )
    case "cut":
      return (
        <>
          <State tone="warn">cut</State> <Ago at={state.since} />, connecting again. What comes
          meanwhile will follow.
        </>
      )
    case "refused":
      return <State tone="bad">not live</State>
  }
}

const lineAt = (line: LiveLine | undefined) => {
  if (line === undefined || !isCut(line)) return line
  const seconds = Math.max(1, Math.round((line.to - line.from) / 1_000))
  return {
    says:
      `cut at ${shortTime(new Date(line.from).toISOString(), zone.value)} for ${seconds} s; `
      + "what came meanwhile follows above, none is left out"
  }
}

const Events = ({ live, where }: { readonly live: LiveEvents; readonly where: string }) => {
  const { route } = useLocation()
  const scroller = useRef<HTMLElement>(null)
  const events = live.lines
  const rows = useRows(events.length, ROW_HEIGHT, scroller)
  useEffect(() => {
    const element = scroller.current
    const onScroll = (): void => {
      if (element!.scrollTop > READING_PX && !live.isPaused.peek()) live.pause(true)
    }
    element?.addEventListener("scroll", onScroll, { passive: true })
    return () => element?.removeEventListener("scroll", onScroll)
  }, [live, events.length === 0])
  if (events.length === 0) {
    return (
      <Empty title="Nothing yet">
        <p>Events that match appear here as soon as they are in the chain.</p>
      </Empty>
    )
  }
  const view = viewOf({ where })
  const addressOfEvent = (sequence: number) => addressOf({ ...view, event: sequence })
  return (
    <EventRows
      rows={rows}
      scroller={scroller}
      total={events.length}
      at={(index) => lineAt(events[index])}
      columns={["sequence_number", ...view.columns]}
      chosen={undefined}
      addressOf={({ sequence_number }) => addressOfEvent(sequence_number)}
      open={({ sequence_number }) => route(addressOfEvent(sequence_number))}
    />
  )
}

const Stream = ({ after, where }: { readonly after: number; readonly where: string }) => {
  const { route } = useLocation()
  const filter = filterOf({ where, from: undefined, to: undefined }, 0)
  const live = useMemo(() => new LiveEvents(filter, after), [filter, after])
  useEffect(() => () => live.end(), [live])
  const isPaused = live.isPaused.value
  const keys = useMemo(
    () => [
      { key: "/", what: "go to the query", run: () => document.getElementById("where")?.focus() },
      { key: "p", what: "pause, and go on", run: () => live.pause(!live.isPaused.peek()) }
    ],
    [live]
  )
  usePageKeys(keys)
  const state = live.stream.state.value
  const failure = state.is === "refused" ? state.failure : undefined
  const ofQuery = failure?.field === "where" ? failure : undefined
  const apply = (text: string) =>
    route(text === "" ? "/live" : `/live?${new URLSearchParams({ where: text })}`)
  const missed = live.missed.value
  return (
    <>
      <div class="controls">
        <QueryBox text={where} apply={apply} failure={ofQuery} />
        <button type="button" aria-pressed={isPaused} onClick={() => live.pause(!isPaused)}>
          {isPaused ? "Go on" : "Pause"}
        </button>
      </div>
      <p role="status">
        <StateOf live={live} />
        {missed > 0 ? <strong> {counted(missed, "event")} since the pause</strong> : undefined}
      </p>
      <p class="faint">
        {live.rate.value.toFixed(1)} events/s, {counted(live.count.value, "event")} shown so far
        {live.count.value > LIVE_MAX ? `, the newest ${count(LIVE_MAX)} are kept` : ""}.
      </p>
      {failure !== undefined && ofQuery === undefined ? (
        <Failure failure={failure} retry={() => live.stream.start()} />
      ) : undefined}
      <Events live={live} where={where} />
    </>
  )
}

export const Live = () => {
  const { query } = useLocation()
  const where = query["where"] ?? ""
  const chain = useAnswer<Chain>("/v1/chain")
  return (
    <>
      <h1>Live</h1>
      {chain.data !== undefined ? (
        <Stream key={where} where={where} after={Math.max(0, chain.data.length - BEFORE)} />
      ) : chain.failure !== undefined ? (
        <Failure failure={chain.failure} retry={chain.reload} />
      ) : (
        <Loading what="the stream" />
      )}
    </>
  )
}
