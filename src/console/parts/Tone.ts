/** How something stands, for its mark and its colour; `plain` says nothing of it. */
export type Tone = "good" | "bad" | "warn" | "plain"
