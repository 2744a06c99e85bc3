/** Marks beside words, drawn: not every machine has them among its fonts. */

import type { Tone } from "./Tone.ts"

export type { Tone } from "./Tone.ts"

const paths: Readonly<Record<Tone, string>> = {
  good: "M3 8.5l3.2 3.2L13 5",
  bad: "M4 4l8 8M12 4l-8 8",
  warn: "M8 3v6.5M8 12.5v.5",
  plain: "M7.5 8h1"
}

export const Mark = ({ tone }: { readonly tone: Tone }) => (
  <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
    <path d={paths[tone]} />
  </svg>
)
