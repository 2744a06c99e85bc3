/** The alert rules as data, and whether they fire over series, with the time that they wait. */
import { readFileSync } from "node:fs"
import { parse as parseYaml } from "yaml"
import { evaluate, type Series } from "./Evaluate.ts"
import { secondsOf } from "./Parse.ts"

export const RULES_FILE = "docker/prometheus/alerts.yaml"

/** Seconds between two evaluations, and between two scrapes. */
export const INTERVAL = 15

export interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: {
    readonly summary: string
    readonly description: string
    readonly runbook: string
  }
}

export const rules: ReadonlyArray<Rule> = (
  parseYaml(readFileSync(RULES_FILE, "utf8")) as {
    readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<Rule> }>
  }
).groups.flatMap((group) => group.rules)

/** What `/metrics` said, as Prometheus would keep it, or that there was no answer. */
export interface Scrape {
  /** Seconds. */
  readonly at: number
  readonly text: string | undefined
  readonly instance?: string
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g

const numberIn = (text: string): number => Number(text.replace("Inf", "Infinity"))

/** The series of several scrapes. */
export const seriesOf = (scrapes: ReadonlyArray<Scrape>): ReadonlyArray<Series> => {
  const found = new Map<string, Series & { points: Array<[number, number]> }>()
  const add = (name: string, labels: Record<string, string>, at: number, value: number) => {
    const key = JSON.stringify([name, labels])
    const one = found.get(key) ?? { name, labels, points: [] }
    found.set(key, one)
    one.points.push([at, value])
  }
  for (const { at, instance = "alk:8080", text } of scrapes) {
    const target = { instance, job: "alk" }
    add("up", target, at, text === undefined ? 0 : 1)
    for (const line of (text ?? "").split("\n")) {
      const [, name, labels = "", value] = SAMPLE.exec(line) ?? []
      if (name === undefined || value === undefined) continue
      const own = [...labels.matchAll(LABEL)].map(([, label, text]) => [label!, text!] as const)
      add(name, { ...Object.fromEntries(own), ...target }, at, numberIn(value))
    }
  }
  return [...found.values()]
}

/** True if a rule fires at some time from `from` to `to`, in seconds. */
export const fires = (
  rule: Rule,
  series: ReadonlyArray<Series>,
  { from, to }: { readonly from: number; readonly to: number }
): boolean => {
  const wait = rule.for === undefined ? 0 : secondsOf(rule.for)
  const since = new Map<string, number>()
  for (let time = from; time <= to; time += INTERVAL) {
    const active = evaluate(rule.expr, series, time).map(({ labels }) => JSON.stringify(labels))
    for (const key of since.keys()) if (!active.includes(key)) since.delete(key)
    for (const key of active) if (!since.has(key)) since.set(key, time)
    if ([...since.values()].some((start) => time - start >= wait)) return true
  }
  return false
}

/** Names of the rules that fire. */
export const firing = (
  series: ReadonlyArray<Series>,
  window: { readonly from: number; readonly to: number }
): ReadonlyArray<string> =>
  rules.filter((rule) => fires(rule, series, window)).map(({ alert }) => alert)
