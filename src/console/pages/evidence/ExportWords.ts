/** Words for what exports are, and for what is being done to one. Pure. */
import type { ExportJob } from "../../../client/gen/Api.d.ts"
import type { Tone } from "../../parts/Mark.tsx"

type Kind = ExportJob["kind"]

/** In the order in which they are offered. */
export const kinds: ReadonlyArray<Kind> = ["pack", "pdf", "csv", "ndjson", "ocsf"]

export const kindTitles: Readonly<Record<Kind, string>> = {
  pack: "evidence pack",
  pdf: "PDF report",
  csv: "CSV table",
  ndjson: "NDJSON file",
  ocsf: "OCSF file"
}

/** An export by its kind, and what is in it. */
export const titleOf = ({ kind, pdf }: Pick<ExportJob, "kind" | "pdf">): string => {
  const title = `${kindTitles[kind][0]!.toUpperCase()}${kindTitles[kind].slice(1)}`
  return kind === "pack" && pdf === false ? `${title} without PDF` : title
}

const stageTitles: Readonly<Record<ExportJob["stage"], string>> = {
  waiting: "waiting for its turn",
  checkpoint: "signing a checkpoint",
  verifying: "recomputing the chain",
  printing: "printing the PDF",
  writing: "writing the file"
}

/** The stages of an export in their order. */
export const stagesOf = ({
  kind,
  pdf
}: Pick<ExportJob, "kind" | "pdf">): ReadonlyArray<ExportJob["stage"]> => {
  if (kind !== "pack" && kind !== "pdf") return ["waiting", "writing"]
  const printing = kind === "pack" && pdf === false ? [] : ["printing" as const]
  return ["waiting", "checkpoint", "verifying", ...printing, "writing"]
}

export const stageTitle = (stage: ExportJob["stage"]): string => stageTitles[stage]

export const statusTones: Readonly<Record<ExportJob["status"], Tone>> = {
  queued: "plain",
  running: "plain",
  done: "good",
  failed: "bad",
  cancelled: "warn",
  expired: "plain"
}

/** The conditions of an export, one text each. */
export const filterTexts = ({ filters }: Pick<ExportJob, "filters">): ReadonlyArray<string> =>
  Object.entries(filters).map(([name, value]) => (name === "where" ? value : `${name}:${value}`))
