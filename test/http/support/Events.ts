/** Events as the tests send them. */

export const item = (n: number, more: object = {}) => ({
  timestamp: `2026-01-01T00:00:00.${String(n).padStart(6, "0")}Z`,
  actor: { id: `user_${n % 3}`, type: "human", email: `u${n % 3}@example.com` },
  action: n % 2 === 0 ? "document.read" : "document.shared",
  resource: { id: `doc_${n}`, type: "document", name: `Doc ${n}` },
  outcome: "success",
  metadata: { n },
  ...more
})

export const items = (count: number) => Array.from({ length: count }, (_, n) => item(n))
