/** The documents of a shared scope: what each is, what it costs, and how far its download is. */
import { useSignal } from "@preact/signals"
import { failureOf } from "../../api/Answer.ts"
import type { ApiFailure } from "../../api/Client.ts"
import { Card, Failure } from "../../parts/Basics.tsx"
import { bytes } from "../../parts/Format.ts"
import type { SharedDocument } from "./SharedDocuments.ts"

const Document = ({
  isOpen,
  of,
  text,
  title
}: {
  readonly title: string
  readonly text: string
  readonly of: SharedDocument
  readonly isOpen: boolean
}) => {
  const failure = useSignal<ApiFailure | undefined>(undefined)
  const isBusy = useSignal(false)
  const run = async () => {
    isBusy.value = true
    failure.value = undefined
    try {
      await of.save()
    } catch (error) {
      failure.value = failureOf(error)
    } finally {
      isBusy.value = false
    }
  }
  return (
    <li>
      <div class="share-document">
        <div>
          <strong>{title}</strong>
          <p class="faint">{text}</p>
        </div>
        <button type="button" onClick={run} disabled={isBusy.value || !(isOpen || of.isHere)}>
          {of.isHere ? "Save again" : "Download"}
        </button>
      </div>
      {isBusy.value ? (
        <div role="status">
          <progress aria-label={title} />
          <p class="faint">
            {of.received === 0 ? "The service is making it …" : `${bytes(of.received)} received`}
          </p>
        </div>
      ) : undefined}
      {failure.value === undefined ? undefined : (
        <Failure failure={failure.value} retry={run} isByHand />
      )}
      {of.note === undefined ? undefined : <p class="stale">{of.note}</p>}
    </li>
  )
}

export const Downloads = ({
  cost,
  isOpen,
  pack,
  pdf
}: {
  readonly pdf: SharedDocument
  readonly pack: SharedDocument
  readonly cost: string | undefined
  readonly isOpen: boolean
}) => (
  <Card title="Documents">
    {cost === undefined ? undefined : <p>{cost}</p>}
    <ul class="rows">
      <Document
        title="Report (PDF)"
        text="For reading: verdict, population, statistics, exceptions, samples."
        of={pdf}
        isOpen={isOpen}
      />
      <Document
        title="Evidence pack (ZIP)"
        text="For checking: the events, what proves them, the report, and programs that check it without this service."
        of={pack}
        isOpen={isOpen}
      />
    </ul>
  </Card>
)
