/**
 * Both chains of the tenant: where they end, whether they hold, their signed checkpoints, and
 * whether they still lead to one that was kept.
 */
import { useLocation } from "preact-iso/router"
import type { Chain } from "../../../client/gen/Api.d.ts"
import { type Answer, useAnswer } from "../../api/Answer.ts"
import { Ago, Card, Failure, Id, Loading, Stale, State, Time } from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"
import { useCopyKeys } from "../../state/Copying.ts"
import {
  type ChainName,
  checksOf,
  parametersOf,
  requestOf,
  type VerificationRequest
} from "../../state/VerificationRequest.ts"
import { recordOf } from "./ChainWords.ts"
import { Checkpoints } from "./Checkpoints.tsx"
import { Kept } from "./Kept.tsx"
import { Verify } from "./Verify.tsx"

const EVERY_SECONDS = 10

const HeadOf = ({ chain, name }: { readonly chain: Chain; readonly name: ChainName }) => {
  const { checkpoint, head, length, scheme } = chain
  const unsigned = length - (checkpoint?.tree_size ?? 0)
  if (head === null) return <p>Nothing was recorded yet.</p>
  return (
    <>
      <p class="verdict">{counted(length, recordOf(name))}</p>
      <p>
        The last one is #{count(head.sequence_number)}, recorded <Time at={head.created_at} /> (
        <Ago at={head.created_at} />
        ), hash <Id value={head.hash} length={17} />.
      </p>
      <p>
        {checkpoint === undefined ? (
          <State tone="warn">no signed checkpoint yet</State>
        ) : (
          <>
            Signed to #{count(checkpoint.tree_size)} <Ago at={checkpoint.created_at} />
            {unsigned > 0 ? `; ${counted(unsigned, "newer one waits", "newer ones wait")}` : ""}.
          </>
        )}
      </p>
      <p class="faint">
        Scheme <code>{scheme}</code>. As the log says it, whatever the store holds.
      </p>
    </>
  )
}

const Head = ({
  answer,
  name,
  title
}: {
  readonly answer: Answer<Chain>
  readonly name: ChainName
  readonly title: string
}) => (
  <Card title={title}>
    <Stale answer={answer} />
    {answer.data !== undefined ? (
      <HeadOf chain={answer.data} name={name} />
    ) : answer.failure !== undefined ? (
      <Failure failure={answer.failure} retry={answer.reload} />
    ) : (
      <div class="head-room">
        <Loading what="the chain" />
      </div>
    )}
  </Card>
)

const sizeOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined

export const ChainPage = () => {
  const { query, route } = useLocation()
  const events = useAnswer<Chain>("/v1/chain", EVERY_SECONDS)
  const traces = useAnswer<Chain>("/v1/chain?chain=traces", EVERY_SECONDS)
  const chain: ChainName = query["chain"] === "traces" ? "traces" : "events"
  const view = {
    request: requestOf(query),
    isAsked: query["run"] === "1",
    chain,
    size: sizeOf(query["checkpoint"])
  }
  const addressOf = (next: Partial<typeof view>): string => {
    const { chain: shown, isAsked, request, size } = { ...view, ...next }
    const parameters = new URLSearchParams(parametersOf(request))
    if (isAsked) parameters.set("run", "1")
    if (shown === "traces") parameters.set("chain", shown)
    if (size !== undefined) parameters.set("checkpoint", String(size))
    const text = parameters.toString()
    return text === "" ? "/chain" : `/chain?${text}`
  }
  useCopyKeys(checksOf(view.request)[0]!.path)
  const newest = (chain === "traces" ? traces : events).data?.checkpoint?.tree_size
  return (
    <>
      <h1>Chain</h1>
      <div class="columns">
        <Head title="Audit events" answer={events} name="events" />
        <Head title="Trace facts" answer={traces} name="traces" />
      </div>
      <Verify
        request={view.request}
        isAsked={view.isAsked}
        show={(request: VerificationRequest, isAsked: boolean) =>
          route(addressOf({ request, isAsked }))
        }
      />
      <Checkpoints
        key={chain}
        chain={chain}
        newest={newest}
        chosen={view.size}
        addressOf={(next) => addressOf({ size: undefined, ...next })}
        open={(size) => route(addressOf({ size }), true)}
      />
      <Kept />
    </>
  )
}
