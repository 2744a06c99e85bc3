/** The pages that the menu leads to, and the letter that follows `g` on the way there. */
export interface Place {
  readonly path: string
  readonly title: string
  readonly letter: string
}

export const places: ReadonlyArray<Place> = [
  { path: "/", title: "Overview", letter: "o" },
  { path: "/events", title: "Events", letter: "e" },
  { path: "/live", title: "Live", letter: "l" },
  { path: "/executions", title: "Executions", letter: "x" },
  { path: "/chain", title: "Chain", letter: "c" },
  { path: "/evidence", title: "Evidence", letter: "v" },
  { path: "/receipts", title: "Receipts", letter: "r" },
  { path: "/health", title: "Health", letter: "h" },
  { path: "/keys", title: "Keys", letter: "k" },
  { path: "/settings", title: "Settings", letter: "s" }
]
