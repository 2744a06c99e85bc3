/** What became of an ingest request, by its receipt: followed until that is final. */
import { useEffect } from "preact/hooks"
import { useLocation, useRoute } from "preact-iso/router"
import type { Receipt } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Copy, Empty, Failure, Loading } from "../../parts/Basics.tsx"
import { curlOf, useCopyKeys } from "../../state/Copying.ts"
import { ReceiptShown } from "./ReceiptShown.tsx"

/** A command is decided in some milliseconds: one that takes longer waits for something. */
const FOLLOW_SECONDS = 2

const addressOf = (id: string): string => `/receipts/${encodeURIComponent(id)}`

const pathOf = (id: string): string => `/v1/receipts/${encodeURIComponent(id)}`

const Box = ({ id }: { readonly id: string }) => {
  const { route } = useLocation()
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget as HTMLFormElement)
    const wanted = String(data.get("receipt") ?? "").trim()
    if (wanted !== "") route(addressOf(wanted))
  }
  return (
    <form class="receipt-box" onSubmit={submit} key={id}>
      <label for="receipt">Receipt id</label>
      <input
        id="receipt"
        name="receipt"
        defaultValue={id}
        placeholder="rcp_…"
        autocomplete="off"
        spellcheck={false}
        maxLength={256}
      />
      <button type="submit" class="primary">
        Show
      </button>
    </form>
  )
}

const Unknown = () => (
  <Empty title="There is no such receipt">
    <p>
      A receipt is known to its own tenant only, from the moment of the answer that named it, and
      kept for 7 days at least. Look for a letter too few, or for the tenant of the key that you
      signed in with.
    </p>
  </Empty>
)

const One = ({ id }: { readonly id: string }) => {
  useCopyKeys(pathOf(id))
  const receipt = useAnswer<Receipt>(pathOf(id))
  const { data, failure, isLoading, reload } = receipt
  const isPending = data?.status === "pending"
  useEffect(() => {
    if (!isPending || isLoading) return
    const timer = setTimeout(reload, FOLLOW_SECONDS * 1_000)
    return () => clearTimeout(timer)
  }, [isPending, isLoading, receipt.at, reload])
  if (failure?.status === 404) return <Unknown />
  return (
    <>
      {failure === undefined ? undefined : <Failure failure={failure} retry={reload} />}
      {data !== undefined ? (
        <>
          <ReceiptShown receipt={data} isDoubted={failure !== undefined} />
          <p class="actions">
            <Copy label="Copy JSON" text={JSON.stringify(data, null, 2)} />
            <Copy label="Copy as curl" text={curlOf(pathOf(id))} />
            <Copy label="Copy link" text={location.origin + addressOf(id)} />
          </p>
        </>
      ) : failure === undefined ? (
        <Loading what="the receipt" />
      ) : undefined}
    </>
  )
}

export const Receipts = () => {
  const id = useRoute().params["id"] ?? ""
  return (
    <>
      <h1>Receipts</h1>
      <Box id={id} />
      {id === "" ? (
        <Empty title="Paste the id of a receipt">
          <p>
            Every answer to <code>POST /v1/events</code> and its kin names one as{" "}
            <code>receipt_id</code>: it says what became of the request.
          </p>
        </Empty>
      ) : (
        <One key={id} id={id} />
      )}
    </>
  )
}
