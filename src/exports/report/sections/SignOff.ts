/** Room for those who answer for the document. */
import { type Html, html } from "../Html.ts"
import type { Section } from "../Report.ts"

const signature = (role: string, statement: string): Html =>
  html`<section class="signature"><h2>${role}</h2><p>${statement}</p>
    <div class="lines"><span>Name</span><span>Title</span><span>Date (UTC)</span>
      <span>Signature</span></div></section>`

const body = (): Html => html`
  ${signature(
    "Prepared by",
    "I generated this report from the service named on the cover and changed nothing in it."
  )}
  ${signature(
    "Reviewed by",
    "I have read the verdict and the exceptions, and the bounds are those that were asked for."
  )}
  ${signature(
    "Received by the auditor",
    "I have received this report and the evidence pack of the same bounds."
  )}`

export const signOff: Section = { title: "Sign-off", body }
