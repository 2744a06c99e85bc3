/** The way from an event to the signed root, recomputed here and drawn as it was computed. */
import { useEffect, useState } from "preact/hooks"
import type {
  AuditEvent,
  EventListResponse,
  InclusionProof,
  PublicKeys
} from "../../../client/gen/Api.d.ts"
import { failureOf } from "../../api/Answer.ts"
import { type ApiFailure, call } from "../../api/Client.ts"
import { Ago, Failure, Id, Loading, State } from "../../parts/Basics.tsx"
import { count, shortId } from "../../parts/Format.ts"
import { saveFile } from "../../parts/SaveFile.ts"
import { canProve, type EventProof, type Level, proveEvent } from "../../proof/EventProof.ts"

interface Evidence {
  readonly event: AuditEvent
  readonly previous: AuditEvent | undefined
  readonly inclusion: InclusionProof
  readonly keys: PublicKeys
}

type Result =
  | { readonly is: "asking" }
  | { readonly is: "failed"; readonly failure: ApiFailure }
  | { readonly is: "done"; readonly evidence: Evidence; readonly proof: EventProof }

const collect = async (event: AuditEvent, signal: AbortSignal): Promise<Evidence> => {
  const { sequence_number } = event
  const [inclusion, keys, before] = await Promise.all([
    call<InclusionProof>(`/v1/chain/proofs/inclusion?sequence_number=${sequence_number}`, {
      signal
    }),
    call<PublicKeys>("/.well-known/alk-keys.json", { signal }),
    sequence_number === 1
      ? undefined
      : call<EventListResponse>(`/v1/events?sequence_number=${sequence_number - 1}`, { signal })
  ])
  return { event, previous: before?.events[0], inclusion, keys }
}

const useProof = (event: AuditEvent): readonly [Result, () => void] => {
  const [result, setResult] = useState<Result>({ is: "asking" })
  const [attempt, setAttempt] = useState(0)
  useEffect(() => {
    if (!canProve()) return
    const controller = new AbortController()
    setResult({ is: "asking" })
    const prove = async () => {
      const evidence = await collect(event, controller.signal)
      const { inclusion, keys, previous } = evidence
      const proof = await proveEvent(event, previous, inclusion, keys)
      if (!controller.signal.aborted) setResult({ is: "done", evidence, proof })
    }
    prove().catch((error) => {
      if (!controller.signal.aborted) setResult({ is: "failed", failure: failureOf(error) })
    })
    return () => controller.abort()
  }, [event, attempt])
  return [result, () => setAttempt((before) => before + 1)]
}

const LevelOf = ({ level: { hash, sibling, side } }: { readonly level: Level }) => (
  <li>
    <span class="node">
      SHA-256 <code title={hash}>{shortId(hash, 17)}</code>
    </span>
    <span class={`sibling ${side}`}>
      with <code title={sibling}>{shortId(sibling, 17)}</code> on the {side}
    </span>
  </li>
)

/** Levels that are shown at each end of a long path. */
const SHOWN = 3

const Path = ({ evidence, proof }: { evidence: Evidence; proof: EventProof }) => {
  const { event, inclusion } = evidence
  const { levels, leaf, root } = proof
  const upwards = levels.slice(0, -1)
  const [top, middle, bottom] =
    upwards.length <= 2 * SHOWN
      ? [upwards, [], []]
      : [upwards.slice(-SHOWN), upwards.slice(SHOWN, -SHOWN), upwards.slice(0, SHOWN)]
  const last = levels.at(-1)
  return (
    <ol class="path" reversed aria-label="From the signed root down to the event">
      <li>
        <span class="node root">
          signed root <code title={root}>{shortId(root, 17)}</code>
        </span>
        {last === undefined ? undefined : (
          <span class={`sibling ${last.side}`}>
            with <code title={last.sibling}>{shortId(last.sibling, 17)}</code> on the {last.side}
          </span>
        )}
      </li>
      {top.toReversed().map((level) => (
        <LevelOf key={level.hash} level={level} />
      ))}
      {middle.length === 0 ? undefined : (
        <li>
          <details>
            <summary>{count(middle.length)} more</summary>
            <ol reversed>
              {middle.toReversed().map((level) => (
                <LevelOf key={level.hash} level={level} />
              ))}
            </ol>
          </details>
        </li>
      )}
      {bottom.toReversed().map((level) => (
        <LevelOf key={level.hash} level={level} />
      ))}
      <li>
        <span class="node">
          leaf <code title={leaf}>{shortId(leaf, 17)}</code>
        </span>
      </li>
      <li>
        <span class="node event">
          event #{count(event.sequence_number)}{" "}
          <code title={inclusion.event_hash}>{shortId(event.hash, 17)}</code>
        </span>
      </li>
    </ol>
  )
}

const Steps = ({ proof }: { readonly proof: EventProof }) => (
  <ul class="steps">
    {proof.steps.map(({ computed, isTrue, name, stated }) => (
      <li key={name}>
        <State tone={isTrue ? "good" : "bad"}>{name}</State>
        {isTrue ? undefined : (
          <p class="failure">
            computed <Id value={computed} length={40} />, the record says{" "}
            <Id value={stated} length={40} />
          </p>
        )}
      </li>
    ))}
  </ul>
)

export const ProofPath = ({ event }: { readonly event: AuditEvent }) => {
  const [result, retry] = useProof(event)
  if (!canProve()) {
    return (
      <p class="stale">
        This browser computes hashes only over https or on this machine itself (
        <code>localhost</code>). <code>GET /v1/verify/events/{event.id}</code> has the verdict of
        the service.
      </p>
    )
  }
  if (result.is === "asking") return <Loading what="the proof" />
  if (result.is === "failed") return <Failure failure={result.failure} retry={retry} />
  const { evidence, proof } = result
  const { checkpoint } = evidence.inclusion
  return (
    <>
      <p class="verdict" role="status">
        {proof.isTrue ? (
          <State tone="good">in the signed tree of {count(checkpoint.tree_size)}</State>
        ) : (
          <State tone="bad">this event does not match the signed tree</State>
        )}
      </p>
      <p class="faint">
        Recomputed in this browser. Signed <Ago at={checkpoint.created_at} /> with key{" "}
        <code>{checkpoint.key_id}</code>.
      </p>
      <Steps proof={proof} />
      <Path evidence={evidence} proof={proof} />
      <button
        type="button"
        onClick={() =>
          saveFile(
            `${event.tenant_id}-${event.sequence_number}-proof.json`,
            "application/json",
            `${JSON.stringify(evidence, null, 2)}\n`
          )
        }
      >
        Save the proof
      </button>
    </>
  )
}
