/** What a person likes: colours, the zone of times, shortcuts. Kept in this browser. */
import { effect, signal } from "@preact/signals"

export const themes = ["system", "light", "dark"] as const
export type Theme = (typeof themes)[number]
export const zones = ["UTC", "local"] as const
export type Zone = (typeof zones)[number]
/** Single keys as shortcuts: who speaks to the machine turns them off. */
export const keyChoices = ["on", "off"] as const
export type KeyChoice = (typeof keyChoices)[number]

/** What the names of everything begin with that the console keeps in this browser. */
const PREFIX = "alk."

const kept = <A extends string>(name: string, allowed: ReadonlyArray<A>, unset: A): A => {
  try {
    const value = localStorage.getItem(PREFIX + name)
    return allowed.find((one) => one === value) ?? unset
  } catch {
    // Storage is closed to some private windows.
    return unset
  }
}

const keep = (name: string, value: string): void => {
  try {
    localStorage.setItem(PREFIX + name, value)
  } catch {
    // It holds for this page.
  }
}

export const theme = signal<Theme>(kept("theme", themes, "system"))
export const zone = signal<Zone>(kept("zone", zones, "UTC"))
export const keys = signal<KeyChoice>(kept("keys", keyChoices, "on"))

effect(() => {
  const { value } = theme
  if (value === "system") delete document.documentElement.dataset["theme"]
  else document.documentElement.dataset["theme"] = value
  keep("theme", value)
})
effect(() => keep("zone", zone.value))
effect(() => keep("keys", keys.value))

/** The names of all that the console keeps in this browser, and how long its texts are. */
export const keptNames = (): ReadonlyArray<readonly [name: string, length: number]> => {
  try {
    return Object.entries<string>(localStorage)
      .filter(([name]) => name.startsWith(PREFIX))
      .map(([name, text]) => [name, text.length] as const)
      .sort(([left], [right]) => (left < right ? -1 : 1))
  } catch {
    return []
  }
}

/** Removes all of it; what is shown changes when the page is loaded again. */
export const forgetAll = (): void => {
  for (const [name] of keptNames()) localStorage.removeItem(name)
}
