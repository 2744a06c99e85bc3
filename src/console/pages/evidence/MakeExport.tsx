/** What to make of the scope, with a sentence on what each form is for. */
import type { TargetedSubmitEvent } from "preact"
import { useState } from "preact/hooks"
import type { ExportJob } from "../../../client/gen/Api.d.ts"
import { Card, Failure } from "../../parts/Basics.tsx"
import type { Scope } from "../../state/EvidenceView.ts"
import { exportWords } from "./CoverWords.ts"
import { kinds, kindTitles } from "./ExportWords.ts"
import { askFor, useAct } from "./UseExports.ts"
import { coverOf, type Survey } from "./UseSurvey.ts"

const purposes: Readonly<Record<ExportJob["kind"], string>> = {
  pack:
    "A ZIP for an auditor who trusts nobody: events and what agents did, with everything that proves "
    + "them, and three programs that check it without this service.",
  pdf: "A report to read and to sign: period, verdict, statistics, failures, samples.",
  csv: "A table for a spreadsheet or another tool. It proves nothing by itself.",
  ndjson: "One event a line, each byte as it is stored, for programs.",
  ocsf: "One event a line in the form of OCSF 1.4.0, for a SIEM."
}

const LABEL_LENGTH_MAX = 256

export const MakeExport = ({
  scope,
  show,
  survey
}: {
  readonly scope: Scope
  readonly survey: Survey
  readonly show: (job: ExportJob) => void
}) => {
  const [kind, setKind] = useState<ExportJob["kind"]>("pack")
  const { failure, isRunning, run } = useAct()
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    const label = String(given.get("label") ?? "").trim()
    const { from, to, where } = scope
    run(async () =>
      show(
        await askFor({
          kind,
          ...(from === undefined ? {} : { from }),
          ...(to === undefined ? {} : { to }),
          ...(where === undefined ? {} : { filters: { where } }),
          ...(kind === "csv" ? { bom: true } : {}),
          ...(kind === "pack" ? { pdf: given.has("pdf") } : {}),
          ...(label === "" ? {} : { label })
        })
      )
    )
  }
  return (
    <Card title="What to make">
      <form class="make" onSubmit={submit}>
        <fieldset class="kinds">
          <legend class="hidden">Kind</legend>
          {kinds.map((one) => (
            <label key={one} class="kind">
              <input
                type="radio"
                name="kind"
                checked={kind === one}
                onChange={() => setKind(one)}
              />
              <strong>{kindTitles[one]}</strong>
              <span class="faint">{purposes[one]}</span>
            </label>
          ))}
        </fieldset>
        <p class="more">
          <label class="label">
            Name for the list, if you like
            <input name="label" maxLength={LABEL_LENGTH_MAX} placeholder="for the auditor" />
          </label>
          <label class={kind === "pack" ? "check" : "check unused"}>
            <input name="pdf" type="checkbox" defaultChecked disabled={kind !== "pack"} />
            with the PDF report in it
          </label>
        </p>
        <p class="holds">
          It will hold <strong>{exportWords(kind, coverOf(survey, scope))}</strong>.
        </p>
        {failure === undefined ? undefined : <Failure failure={failure} />}
        <p class="actions">
          <button
            type="submit"
            class="primary"
            disabled={isRunning || survey.refused !== undefined}
          >
            {isRunning ? "Asking …" : `Make the ${kindTitles[kind]}`}
          </button>
          <span class="faint">It is made in the background; you may close this page.</span>
        </p>
      </form>
    </Card>
  )
}
