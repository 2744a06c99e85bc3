/**
 * What is to be verified, as the address of the page says it and as the API takes it. Pure. Both
 * chains are two checks, one after the other: the service tells the progress of one chain only.
 */
import { defined } from "../../domain/Defined.ts"

export type ChainName = "events" | "traces"

export interface VerificationRequest {
  readonly chain: ChainName | "both"
  /** Bounds by time, as the API takes them; undefined is open. */
  readonly from: string | undefined
  readonly to: string | undefined
  readonly fromSequence: number | undefined
  readonly toSequence: number | undefined
}

/** One check of the service. */
export interface Check {
  readonly chain: ChainName
  readonly path: string
  /** Sent with POST. */
  readonly body?: unknown
}

const given = (text: string | undefined): string | undefined => (text === "" ? undefined : text)

const sequenceOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined

const chainOf = (text: string | undefined): VerificationRequest["chain"] =>
  text === "events" || text === "traces" ? text : "both"

export const requestOf = (query: Readonly<Record<string, string>>): VerificationRequest => {
  const fromSequence = sequenceOf(query["from_sequence"])
  const toSequence = sequenceOf(query["to_sequence"])
  const chain = chainOf(query["verify"])
  const isBySequence = fromSequence !== undefined || toSequence !== undefined
  return {
    // Sequences are places of one chain.
    chain: chain === "both" && isBySequence ? "events" : chain,
    from: given(query["from"]),
    to: given(query["to"]),
    fromSequence,
    toSequence
  }
}

const boundsOf = ({ from, fromSequence, to, toSequence }: VerificationRequest) =>
  defined({
    from,
    to,
    from_sequence: fromSequence?.toString(),
    to_sequence: toSequence?.toString()
  })

/** Parameters of an address that says this request. */
export const parametersOf = (request: VerificationRequest): Readonly<Record<string, string>> => ({
  ...(request.chain === "both" ? {} : { verify: request.chain }),
  ...boundsOf(request)
})

/** What the service is asked, in this order. */
export const checksOf = (request: VerificationRequest): ReadonlyArray<Check> => {
  const chains = request.chain === "both" ? (["events", "traces"] as const) : [request.chain]
  return chains.map((chain) => ({
    chain,
    path: `/v1/verify?${new URLSearchParams({ chain, ...boundsOf(request) })}`
  }))
}
