/**
 * How a report looks: one accent, hairlines, wide margins, the running header and footer of its
 * pages. The only text in it that is not ours is in the header, escaped for CSS.
 */
import { MONO_STACK, SANS_STACK } from "./Fonts.ts"

/** What the margins of the pages say. */
export interface RunningText {
  readonly left: string
  readonly right: string
  readonly foot: string
  /** The header is a warning. */
  readonly alarm: boolean
}

const cssEscape = (character: string): string => `\\${character.codePointAt(0)!.toString(16)} `

/** A CSS string; everything but letters, digits and spaces as its code point. */
export const cssString = (text: string): string => `"${text.replace(/[^A-Za-z0-9 ]/gu, cssEscape)}"`

const INK = "#1c2430"
const QUIET = "#5b6675"
const HAIRLINE = "#d4d9e0"
const PALE = "#f3f5f8"
const ACCENT = "#1d4468"
const ACCENT_LIGHT = "#8fa9c2"
const ALARM = "#a5172a"
const ALARM_DARK = "#5c0a16"
const ALARM_PALE = "#fbeeef"

const margin = (place: string, content: string, align: string, color = QUIET): string =>
  `@${place} { content: ${content}; font: ${color === QUIET ? 400 : 600} 7.5pt ${SANS_STACK};
    color: ${color}; text-align: ${align}; white-space: nowrap }`

const pages = ({ alarm, foot, left, right }: RunningText): string => `
@page { size: A4; margin: 22mm 15mm 20mm 15mm;
  ${margin("top-left", cssString(left), "left", alarm ? ALARM : QUIET)}
  ${margin("top-right", cssString(right), "right")}
  ${margin("bottom-left", cssString(foot), "left")}
  ${margin("bottom-right", '"Page " counter(page) " of " counter(pages)', "right")} }
@page :first { margin: 16mm 18mm 14mm 18mm;
  @top-left { content: none } @top-right { content: none }
  @bottom-left { content: none } }
`

const text = `
* { box-sizing: border-box }
html { font: 9.25pt/1.5 ${SANS_STACK}; color: ${INK}; font-synthesis: none;
  font-variant-numeric: tabular-nums lining-nums; -webkit-print-color-adjust: exact }
body { margin: 0 }
p { margin: 0 0 2.4mm; max-width: 150mm }
.lead { font-size: 10.5pt; line-height: 1.45; margin-bottom: 4mm; max-width: none }
strong, th, dt { font-weight: 600 }
i { font-style: normal; color: ${QUIET} }
code, .hash { font-family: ${MONO_STACK}; font-size: 0.92em }
code { overflow-wrap: anywhere }
.hash { font-variant-ligatures: none; display: inline-block; max-width: 22.4em }
.hash span { margin-right: 0.55em }
.short { white-space: nowrap }
.command { display: block; background: ${PALE}; padding: 1mm 2mm; margin: 0.8mm 0;
  white-space: pre-wrap; break-inside: avoid }
p:has(+ .command, + table) { break-after: avoid }
.unbroken { white-space: nowrap }
.quiet { color: ${QUIET} }
.foreign { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate }
.code-point { font: 0.78em ${MONO_STACK}; color: ${ACCENT}; border: 0.4pt solid ${ACCENT_LIGHT};
  border-radius: 1.5pt; padding: 0 1.5pt; margin: 0 0.5pt; white-space: nowrap }
.left-out { color: ${QUIET}; font-size: 0.88em }
.json { font-family: ${MONO_STACK}; font-size: 0.88em; line-height: 1.45 }
.tone.intact { color: ${ACCENT} } .tone.broken { color: ${ALARM} }
.none { color: ${QUIET} }
.note { font-size: 8pt; color: ${QUIET} }
.alarm { border-left: 2.5pt solid ${ALARM}; background: ${ALARM_PALE}; padding: 2.5mm 3.5mm;
  max-width: none }
ol, ul { margin: 0 0 3mm; padding-left: 6mm; max-width: 172mm } li { margin-bottom: 1mm }
h1, h2, h3 { font-weight: 600; line-height: 1.25; break-after: avoid; margin: 0 }
h2 { font-size: 11pt; margin: 5.5mm 0 1.8mm }
h3 { font-size: 9.25pt; margin: 0 0 1.2mm }
.chapter { margin-top: 11mm }
.chapter.sign-off { break-inside: avoid }
.chapter > h1 { font-size: 15pt; letter-spacing: -0.1pt; padding-bottom: 2mm; margin-bottom: 3.5mm;
  border-bottom: 0.75pt solid ${ACCENT} }
.chapter > h1 .chapter-number { color: ${ACCENT}; display: inline-block; min-width: 10mm }
`

const coverStyles = `
.cover { height: 266mm; display: flex; flex-direction: column; overflow: hidden }
.cover p { max-width: none }
.cover .service { color: ${ACCENT}; font-weight: 600; font-size: 11pt; padding-bottom: 2.5mm;
  border-bottom: 0.75pt solid ${ACCENT}; margin-bottom: 9mm; display: flex; align-items: center }
.cover .logo { max-height: 12mm; max-width: 60mm; margin-right: 5mm }
.cover .kind { color: ${QUIET}; font-size: 11pt; margin-bottom: 0.5mm }
.cover .tenant { font-size: 24pt; line-height: 1.15; font-weight: 600; margin-bottom: 2mm;
  overflow-wrap: anywhere; max-height: 30mm; overflow: hidden }
.cover .period { font-size: 10.5pt; margin-bottom: 6mm }
.cover .figures { display: grid; grid-template-columns: repeat(6, 1fr); column-gap: 4mm;
  margin: 6mm 0 0 }
.cover .figures p { font-size: 8pt; line-height: 1.3; color: ${QUIET}; margin: 0 }
.cover .figures strong { display: block; font-size: 15pt; line-height: 1.2; color: ${INK} }
.cover .exceptions { max-width: none; font-size: 9pt; padding-left: 0; list-style: inside }
.cover .exceptions li { max-height: 10mm; overflow: hidden }
.cover .foot { margin-top: auto; padding-top: 4mm } .cover .foot .facts { margin-bottom: 0 }
.cover .notice { font-size: 7.75pt; color: ${QUIET}; margin: 3mm 0 0 }
.verdict { border-top: 3pt solid; padding: 4mm 5mm 4.5mm; break-inside: avoid }
.verdict p, .verdict ul { max-width: none }
.verdict .label { font-size: 8.5pt; margin: 0 0 1mm }
.verdict .word { font-size: 25pt; line-height: 1.2; font-weight: 600; margin: 0 0 2mm }
.verdict .sentence { font-size: 10.5pt; margin: 0 }
.verdict ul { margin: 3mm 0 0; padding-left: 5mm; font-size: 9pt }
.verdict.intact { background: ${ACCENT}; border-color: ${ACCENT}; color: #fff }
.verdict.broken { background: ${ALARM}; border-color: ${ALARM}; color: #fff }
.verdict.neutral { background: ${PALE}; border-color: ${QUIET} }
.verdict.small { padding: 3.5mm 5mm 4mm; margin-bottom: 5mm }
.verdict.small .word { font-size: 15pt; margin-bottom: 0.5mm }
.verdict.small .sentence { font-size: 9.25pt }
`

const contentsStyles = `
.contents { break-before: page }
.contents h1 { font-size: 15pt; margin-bottom: 3mm }
.contents ol { list-style: none; padding: 0; margin: 0; max-width: none; columns: 2;
  column-gap: 10mm }
.contents li { margin: 0; border-bottom: 0.4pt solid ${HAIRLINE}; break-inside: avoid }
.contents a { display: flex; color: inherit; text-decoration: none; padding: 1.1mm 0;
  font-size: 9.25pt }
.contents .chapter-number { width: 8mm; color: ${ACCENT}; font-weight: 600 }
.contents .chapter-title { flex: 1 }
.contents .chapter-page { width: 12mm; text-align: right }
`

const tableStyles = `
table { width: 100%; border-collapse: collapse; table-layout: fixed; margin: 0 0 4mm;
  font-size: 8.25pt; line-height: 1.42 }
caption { caption-side: top; text-align: left; color: ${QUIET}; font-size: 8pt; padding: 0 0 1.4mm;
  break-after: avoid }
thead { display: table-header-group }
tr { break-inside: avoid }
th, td { text-align: left; vertical-align: top; padding: 1.35mm 2.2mm 1.35mm 0;
  overflow-wrap: anywhere }
th:last-child, td:last-child { padding-right: 0 }
thead th { color: ${ACCENT}; border-bottom: 0.75pt solid ${ACCENT}; vertical-align: bottom;
  overflow-wrap: normal }
tbody td, tbody th { border-bottom: 0.4pt solid ${HAIRLINE} }
.number { text-align: right; padding-right: 4mm }
td.number { white-space: nowrap }
.facts { font-size: 9pt } .facts th { width: 46mm; font-weight: 400; color: ${QUIET} }
.facts.dense { font-size: 8pt } .facts.dense th { width: 28mm }
.facts.dense .hash { max-width: none }
.facts.dense th, .facts.dense td { padding-top: 0.7mm; padding-bottom: 0.7mm }
.groups td:nth-child(2) { vertical-align: middle }
.groups { break-inside: avoid }
.bar { display: block; height: 2.2mm; background: ${ACCENT_LIGHT}; min-width: 0.3mm }
.dense { font-size: 7.75pt; line-height: 1.36 }
.dense th, .dense td { padding-top: 0.9mm; padding-bottom: 0.9mm }
.events { font-size: 6.9pt; line-height: 1.3 }
.events th, .events td { padding: 0.85mm 1.6mm 0.85mm 0; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis }
.events .foreign { white-space: pre }
.events .number { padding-right: 2.5mm }
.columns { display: grid; grid-template-columns: 1fr 1fr; column-gap: 8mm; align-items: start }
.criteria { font-size: 7.9pt; line-height: 1.36 }
.criteria td, .criteria th { padding-top: 1mm; padding-bottom: 1mm }
.actions { list-style: none; margin: 0; padding: 0 } .actions li { margin: 0 0 0.6mm }
.outcome { white-space: nowrap }
.outcome.failure { font-weight: 600; color: ${ALARM} }
.outcome.error { font-weight: 600; color: ${ALARM_DARK} }
.mark, .marked td:first-child { color: ${ALARM}; font-weight: 600 }
.marked td { background: ${ALARM_PALE} }
.erased { color: ${ALARM}; font-size: 0.95em }
.pair { display: grid; grid-template-columns: 15mm 1fr }
.extent { font-size: 8.5pt; max-width: none }
.cards { columns: 2; column-gap: 7mm }
.card { break-inside: avoid; margin: 0 0 3mm; padding-top: 0.5mm }
.card .facts.dense { font-size: 7pt; line-height: 1.28; margin: 0 }
.card .facts.dense th { width: 21mm }
.card .facts.dense th, .card .facts.dense td { padding-top: 0.25mm; padding-bottom: 0.25mm }
.worksheet td { height: 7.4mm; vertical-align: middle }
.box { display: inline-block; width: 3.2mm; height: 3.2mm; border: 0.6pt solid ${QUIET} }
`

const figureStyles = `
figure { margin: 0 0 4mm; break-inside: avoid }
figcaption { color: ${QUIET}; font-size: 8pt; margin-bottom: 1.5mm }
.chart { display: block; width: 100%; height: auto }
.chart .grid { stroke: ${HAIRLINE}; stroke-width: 0.7 }
.chart .tick { font: 9.5px ${SANS_STACK}; fill: ${QUIET} }
rect.success { fill: ${ACCENT_LIGHT} } rect.failure { fill: ${ALARM} }
rect.error { fill: ${ALARM_DARK} }
.legend { font-size: 7.75pt; color: ${QUIET}; margin: 1mm 0 0 }
.swatch { display: inline-block; width: 2.4mm; height: 2.4mm; margin: 0 1.2mm 0 3mm }
.swatch.success { background: ${ACCENT_LIGHT}; margin-left: 0 }
.swatch.failure { background: ${ALARM} }
.swatch.error { background: ${ALARM_DARK} }
.signature { break-inside: avoid; margin-bottom: 9mm }
.lines { display: grid; grid-template-columns: 1fr 1fr; column-gap: 10mm; row-gap: 13mm;
  margin-top: 13mm }
.lines span { border-top: 0.6pt solid ${INK}; padding-top: 1mm; font-size: 8pt; color: ${QUIET} }
dl { display: grid; grid-template-columns: 42mm 1fr; margin: 0; row-gap: 1.6mm }
dd { margin: 0 }
`

/** The whole style sheet, fonts aside. */
export const stylesheet = (running: RunningText): string =>
  pages(running) + text + coverStyles + contentsStyles + tableStyles + figureStyles
