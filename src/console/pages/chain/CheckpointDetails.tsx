/** One signed checkpoint: what it says, how to keep it, and that a later one only added to it. */
import { useState } from "preact/hooks"
import type { Checkpoint, ConsistencyProof, PublicKeys } from "../../../client/gen/Api.d.ts"
import { failureOf } from "../../api/Answer.ts"
import { type ApiFailure, call } from "../../api/Client.ts"
import { Ago, Copy, Failure, Id, Loading, Scrolls, State, Time } from "../../parts/Basics.tsx"
import { count } from "../../parts/Format.ts"
import { saveFile } from "../../parts/SaveFile.ts"
import { type Consistency, proveConsistency } from "../../proof/ConsistencyProof.ts"
import { canProve } from "../../proof/EventProof.ts"
import type { ChainName } from "../../state/VerificationRequest.ts"
import { chainParameter, recordsOf } from "./ChainWords.ts"
import { checkpointLabel } from "./CheckpointLine.tsx"

type Result =
  | { readonly is: "asking" }
  | { readonly is: "failed"; readonly failure: ApiFailure }
  | { readonly is: "done"; readonly consistency: Consistency }

const prove = async (chain: ChainName, first: number, second: number): Promise<Consistency> => {
  const path = `/v1/chain/proofs/consistency?${chainParameter(chain)}`
  const [proof, keys] = await Promise.all([
    call<ConsistencyProof>(`${path}&first=${first}&second=${second}`),
    call<PublicKeys>("/.well-known/alk-keys.json")
  ])
  const tree = chain === "events" ? proof.tenant_id : `${proof.tenant_id}/traces`
  return proveConsistency(tree, proof, keys)
}

const Shown = ({
  first,
  result,
  retry,
  second
}: {
  readonly first: number
  readonly second: number
  readonly result: Result
  readonly retry: () => void
}) => {
  if (result.is === "asking") return <Loading what="the proof" />
  if (result.is === "failed") return <Failure failure={result.failure} retry={retry} />
  const { isTrue, steps } = result.consistency
  return (
    <>
      <p class="verdict" role="status">
        {isTrue ? (
          <State tone="good">
            #{count(second)} only adds to #{count(first)}
          </State>
        ) : (
          <State tone="bad">
            #{count(second)} does not lead from #{count(first)}
          </State>
        )}
      </p>
      <ul class="steps">
        {steps
          .filter((one) => !one.isTrue || isTrue)
          .map(({ computed, isTrue: holds, name, stated }) => (
            <li key={name}>
              <State tone={holds ? (isTrue ? "good" : "plain") : "bad"}>{name}</State>
              {holds ? undefined : (
                <p class="failure">
                  computed <Id value={computed} length={40} />, the checkpoint says{" "}
                  <Id value={stated} length={40} />
                </p>
              )}
            </li>
          ))}
      </ul>
    </>
  )
}

/** Recomputes in this browser that the larger of two trees only added to the smaller one. */
const Compare = ({
  chain,
  others,
  size
}: {
  readonly chain: ChainName
  readonly size: number
  readonly others: ReadonlyArray<Checkpoint>
}) => {
  const [other, setOther] = useState(others.find(({ tree_size }) => tree_size !== size)?.tree_size)
  const [result, setResult] = useState<Result | undefined>(undefined)
  if (other === undefined) {
    return <p class="faint">There is no other checkpoint yet to compare this one with.</p>
  }
  const [first, second] = [Math.min(size, other), Math.max(size, other)]
  const run = () => {
    setResult({ is: "asking" })
    prove(chain, first, second).then(
      (consistency) => setResult({ is: "done", consistency }),
      (error) => setResult({ is: "failed", failure: failureOf(error) })
    )
  }
  return (
    <>
      <div class="verify-form">
        <label>
          Compare with
          <select
            value={other}
            onChange={({ currentTarget }) => {
              setOther(Number(currentTarget.value))
              setResult(undefined)
            }}
          >
            {others
              .filter(({ tree_size }) => tree_size !== size)
              .map((one) => (
                <option key={one.tree_size} value={one.tree_size}>
                  {checkpointLabel(one)}
                </option>
              ))}
          </select>
        </label>
        <button type="button" onClick={run} disabled={!canProve() || result?.is === "asking"}>
          Recompute
        </button>
      </div>
      {canProve() ? undefined : (
        <p class="stale">
          This browser computes hashes only over https or on this machine itself (
          <code>localhost</code>).
        </p>
      )}
      {result === undefined ? undefined : (
        <Shown first={first} second={second} result={result} retry={run} />
      )}
    </>
  )
}

export const CheckpointDetails = ({
  chain,
  checkpoint,
  others
}: {
  readonly chain: ChainName
  readonly checkpoint: Checkpoint
  readonly others: ReadonlyArray<Checkpoint>
}) => {
  const { created_at, key_id, note, root_hash, tenant_id, tree_size } = checkpoint
  return (
    <section class="chain-checkpoint" aria-label={`Checkpoint of #${count(tree_size)}`}>
      <h3>Checkpoint of #{count(tree_size)}</h3>
      <p>
        Covers the {recordsOf(chain)} #1 to #{count(tree_size)}. Signed <Time at={created_at} /> (
        <Ago at={created_at} />) with key <code>{key_id}</code>.
      </p>
      <p>
        Root <code class="whole">{root_hash}</code>
      </p>
      <h3>Keep it</h3>
      <p>
        A copy outside of this service can't be changed by those who run it: a history that is
        written anew never leads to the root that you kept.
      </p>
      <Scrolls label="The signed note">
        <pre class="json">{note}</pre>
      </Scrolls>
      <p class="actions">
        <button
          type="button"
          onClick={() =>
            saveFile(`${tenant_id}-${chain}-${tree_size}.checkpoint`, "text/plain", note)
          }
        >
          Save the note
        </button>
        <Copy label="Copy the note" text={note} />
      </p>
      <h3>Does a later one only add to it?</h3>
      <Compare chain={chain} size={tree_size} others={others} />
    </section>
  )
}
