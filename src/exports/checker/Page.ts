/** What the script of verify.html takes from the checks, as the members of `checks`. */

export { HISTORY_FROM, HISTORY_TO } from "../../domain/Timestamp.ts"
export { checkBlob, readable, sentenceOf, words } from "./Browser.ts"
export { range, shown } from "./Findings.ts"
export { keysOfText } from "./Keys.ts"
export { unreadable } from "./PackCheck.ts"
export { keyText, sequencesText } from "./ReportText.ts"
