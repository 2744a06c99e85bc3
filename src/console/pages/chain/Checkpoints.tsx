/** The signed checkpoints of one chain: on a line, as a table, and one of them in detail. */
import { useEffect, useMemo } from "preact/hooks"
import type { Checkpoint } from "../../../client/gen/Api.d.ts"
import { Card, Empty, Failure, Id, Loading, Scrolls, State, Time } from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"
import { CheckpointPages } from "../../state/CheckpointPages.ts"
import type { ChainName } from "../../state/VerificationRequest.ts"
import { recordsOf } from "./ChainWords.ts"
import { CheckpointDetails } from "./CheckpointDetails.tsx"
import { CheckpointLine } from "./CheckpointLine.tsx"

/** The checkpoints of a chain, asked for again when the newest one is another. */
const usePages = (chain: ChainName, newest: number | undefined): CheckpointPages => {
  const pages = useMemo(() => new CheckpointPages(chain), [chain])
  useEffect(() => () => pages.end(), [pages])
  useEffect(() => {
    void pages.renew()
  }, [pages, newest])
  return pages
}

const Rows = ({
  addressOf,
  checkpoints,
  chosen
}: {
  readonly checkpoints: ReadonlyArray<Checkpoint>
  readonly chosen: number | undefined
  readonly addressOf: (size: number) => string
}) => (
  <details>
    <summary>As a table</summary>
    <Scrolls label="Checkpoints, as a table">
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              Size
            </th>
            <th scope="col">Signed</th>
            <th scope="col">Root</th>
            <th scope="col">Key</th>
          </tr>
        </thead>
        <tbody>
          {checkpoints.map(({ created_at, key_id, root_hash, tree_size }) => (
            <tr key={tree_size}>
              <td class="number">
                <a
                  href={addressOf(tree_size)}
                  aria-current={tree_size === chosen ? "true" : undefined}
                >
                  {count(tree_size)}
                </a>
              </td>
              <td>
                <Time at={created_at} />
              </td>
              <td>
                <Id value={root_hash} length={17} />
              </td>
              <td>
                <code>{key_id}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolls>
  </details>
)

interface Shown {
  readonly chain: ChainName
  /** Size of the tree of the newest checkpoint, as the chain says it. */
  readonly newest: number | undefined
  readonly chosen: number | undefined
  readonly addressOf: (next: { readonly chain?: ChainName; readonly size?: number }) => string
  readonly open: (size: number) => void
}

const Chains = ({ addressOf, chain }: Pick<Shown, "addressOf" | "chain">) => (
  <nav class="tabs" aria-label="Checkpoints of">
    {(["events", "traces"] as const).map((name) => (
      <a
        key={name}
        href={addressOf({ chain: name })}
        aria-current={name === chain ? "page" : undefined}
      >
        {recordsOf(name)}
      </a>
    ))}
  </nav>
)

const Found = ({
  addressOf,
  checkpoints,
  chosen,
  open,
  pages
}: Pick<Shown, "addressOf" | "chosen" | "open"> & {
  readonly checkpoints: ReadonlyArray<Checkpoint>
  readonly pages: CheckpointPages
}) => {
  const addressOfSize = (size: number) => addressOf({ size })
  const shown = checkpoints.find(({ tree_size }) => tree_size === chosen) ?? checkpoints[0]!
  return (
    <>
      <CheckpointLine
        checkpoints={checkpoints}
        chosen={shown.tree_size}
        addressOf={addressOfSize}
        open={open}
      />
      <div class="axis number">
        <Time at={checkpoints.at(-1)!.created_at} />
        <Time at={checkpoints[0]!.created_at} />
      </div>
      <p class="faint">
        {counted(checkpoints.length, "checkpoint")} shown, of #
        {count(checkpoints.at(-1)!.tree_size)} to #{count(checkpoints[0]!.tree_size)}.{" "}
        {pages.hasMore.value ? (
          <button
            type="button"
            class="quiet"
            disabled={pages.isLoading.value}
            onClick={() => void pages.more()}
          >
            {pages.isLoading.value ? "Loading …" : "Show older ones"}
          </button>
        ) : (
          "There are no older ones."
        )}
      </p>
      <Rows checkpoints={checkpoints} chosen={shown.tree_size} addressOf={addressOfSize} />
      {chosen === undefined || chosen === shown.tree_size ? undefined : (
        <p class="stale" role="status">
          <State tone="warn">not among those shown</State> The checkpoint of #{count(chosen)} is
          older, or there is none of this size. The newest one is shown.
        </p>
      )}
      <CheckpointDetails
        key={`${pages.chain} ${shown.tree_size}`}
        chain={pages.chain}
        checkpoint={shown}
        others={checkpoints}
      />
    </>
  )
}

export const Checkpoints = (shown: Shown) => {
  const { addressOf, chain, newest } = shown
  const pages = usePages(chain, newest)
  const list = pages.list.value
  const failure = pages.failure.value
  return (
    <Card title="Signed checkpoints">
      <Chains chain={chain} addressOf={addressOf} />
      {failure === undefined ? undefined : (
        <Failure failure={failure} retry={() => void pages.renew()} />
      )}
      {list === undefined ? (
        failure === undefined ? (
          <div class="checkpoint-room">
            <Loading what="the checkpoints" />
          </div>
        ) : undefined
      ) : list.length === 0 ? (
        <Empty title="No checkpoint yet">
          <p>One is signed about every 10 seconds while the chain of {recordsOf(chain)} grows.</p>
        </Empty>
      ) : (
        <Found {...shown} checkpoints={list} pages={pages} />
      )}
    </Card>
  )
}
