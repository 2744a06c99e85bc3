/**
 * Whether somebody is looking: pages ask for news only then, so that a session that nobody uses ends.
 */

/** Milliseconds without a key, a click or a movement after which nobody is there. */
const AWAY_AFTER_MS = 15 * 60_000

let lastSeen = Date.now()

for (const name of ["keydown", "pointerdown", "pointermove", "wheel", "touchstart"] as const) {
  addEventListener(name, () => (lastSeen = Date.now()), { passive: true })
}

export const isPresent = (): boolean =>
  document.visibilityState === "visible" && Date.now() - lastSeen < AWAY_AFTER_MS
