/** Whether the page is in use: pages ask for news only then, so that an unused session ends. */

/** Milliseconds without a key, a click or a movement after which a page counts as unused. */
const AWAY_AFTER_MS = 15 * 60_000

let lastSeen = Date.now()

for (const name of ["keydown", "pointerdown", "pointermove", "wheel", "touchstart"] as const) {
  addEventListener(name, () => (lastSeen = Date.now()), { passive: true })
}

export const isPresent = (): boolean =>
  document.visibilityState === "visible" && Date.now() - lastSeen < AWAY_AFTER_MS
