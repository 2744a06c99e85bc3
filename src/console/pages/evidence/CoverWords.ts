/** What a document or a share link will hold, in words, said before it is made. Pure. */
import type { ExportJob } from "../../../client/gen/Api.d.ts"
import { counted } from "../../parts/Format.ts"

/** Executions of agents by when they began; packs hold those that ran at any time of the period. */
export interface CoveredExecutions {
  readonly inPeriod: number
  /** Of these it holds those that had not ended when the period began. */
  readonly before: number
}

export interface Cover {
  /** Undefined while it is not known. */
  readonly events: number | undefined
  readonly executions: CoveredExecutions | undefined
  readonly hasQuery: boolean
}

/** How many of the earlier ones still ran is counted when the document is made. */
export const earlierWords = ({ before }: CoveredExecutions): string =>
  before === 0 ? "" : `, and those of ${counted(before, "earlier one")} that still ran then`

const executionsWords = (executions: CoveredExecutions | undefined): string =>
  executions === undefined
    ? "the agent executions of this time"
    : `${counted(executions.inPeriod, "agent execution")}${earlierWords(executions)}`

const eventsWords = ({ events, hasQuery }: Cover): string => {
  const found = events === undefined ? "the events" : counted(events, "event")
  return hasQuery ? `${found} of the query` : found
}

const hasNone = ({ executions }: Cover): boolean =>
  executions !== undefined && executions.inPeriod + executions.before === 0

const joined = (cover: Cover, how: string): string => {
  const both = `${eventsWords(cover)} and ${executionsWords(cover.executions)}`
  return hasNone(cover) ? both : `${both}${how}`
}

const whole = (cover: Cover): string => joined(cover, ", with their inputs and outputs")

export const exportWords = (kind: ExportJob["kind"], cover: Cover): string => {
  if (kind === "pack") return whole(cover)
  if (kind === "pdf") return joined(cover, ", without their inputs and outputs")
  return `${eventsWords(cover)}, no agent executions`
}

/** A link with a query shows events only. */
export const linkWords = (cover: Cover): string =>
  cover.hasQuery ? `${eventsWords(cover)}, no agent executions` : whole(cover)
