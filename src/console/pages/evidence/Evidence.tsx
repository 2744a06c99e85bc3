/**
 * Evidence: choose what it covers, see how much that is, have it made, fetch it. What is under way goes
 * on without this page.
 */
import { useState } from "preact/hooks"
import { useLocation } from "preact-iso/router"
import type { ExportJob } from "../../../client/gen/Api.d.ts"
import {
  type EvidenceView,
  evidenceAddress,
  evidenceViewOf,
  scopeOf
} from "../../state/EvidenceView.ts"
import { ExportPanel } from "./ExportPanel.tsx"
import { ExportTable } from "./ExportTable.tsx"
import { MakeExport } from "./MakeExport.tsx"
import { ScopeChoice } from "./ScopeChoice.tsx"
import { ShareLinks } from "./ShareLinks.tsx"
import { useExport, useExports } from "./UseExports.ts"
import { useSurvey } from "./UseSurvey.ts"

export const Evidence = () => {
  const { query, route } = useLocation()
  const view = evidenceViewOf(query)
  const [now] = useState(Date.now)
  const scope = scopeOf(view, now)
  const change = (changed: Partial<EvidenceView>) => {
    // Another time is not that of the execution.
    const isOtherTime = "period" in changed || "from" in changed || "to" in changed
    const kept = isOtherTime ? { ...view, execution: undefined } : view
    route(evidenceAddress({ ...kept, ...changed }))
  }
  const survey = useSurvey(scope)
  const exports = useExports()
  const shown = useExport(view.export)
  const reload = () => {
    exports.reload()
    shown.reload()
  }
  const show = (job: ExportJob) => {
    exports.reload()
    change({ export: job.id })
  }
  const close = () => {
    exports.reload()
    change({ export: undefined })
  }
  return (
    <>
      <h1>Evidence</h1>
      <p class="faint">
        Documents for auditors and files for others, of a part of the log or all of it.
      </p>
      {view.export === undefined ? undefined : (
        <ExportPanel
          key={view.export}
          id={view.export}
          answer={shown}
          reload={reload}
          show={show}
          close={close}
        />
      )}
      <ScopeChoice view={view} scope={scope} survey={survey} change={change} />
      <MakeExport scope={scope} survey={survey} show={show} />
      <ExportTable
        exports={exports}
        chosen={view.export}
        reload={reload}
        addressOf={(id) => evidenceAddress({ ...view, export: id })}
        show={show}
      />
      <ShareLinks scope={scope} survey={survey} />
    </>
  )
}
