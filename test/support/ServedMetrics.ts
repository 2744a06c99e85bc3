/** What a running program serves at /metrics, compared with the table that says what it may. */
import { assert } from "vitest"
import { type MetricEntry, metricTable } from "../../src/domain/metrics/MetricTable.ts"

interface Family {
  readonly type: string
  readonly help: string
  /** Names of the labels of all samples, without those of the format itself. */
  readonly labels: ReadonlySet<string>
  readonly samples: number
}

/** Labels that the text format has for buckets, and the one of processes that share a port. */
const FORMAT_LABELS: ReadonlySet<string> = new Set(["le", "worker"])

/** The families of a text, by name. */
export const familiesIn = (text: string): ReadonlyMap<string, Family> => {
  const families = new Map<
    string,
    { type: string; help: string; labels: Set<string>; samples: number }
  >()
  const familyOf = (name: string) => {
    const found = families.get(name) ?? {
      type: "",
      help: "",
      labels: new Set<string>(),
      samples: 0
    }
    families.set(name, found)
    return found
  }
  for (const line of text.split("\n").filter((one) => one !== "")) {
    const [, kind, about = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
    if (kind !== undefined) {
      familyOf(about)[kind === "TYPE" ? "type" : "help"] = rest
      continue
    }
    const [, sample = "", labels = ""] = /^([a-z0-9_]+)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    assert.notStrictEqual(sample, "", line)
    const name = families.has(sample) ? sample : sample.replace(/_(?:bucket|sum|count)$/, "")
    assert.isTrue(families.has(name), `a sample without a family: ${line}`)
    const family = familyOf(name)
    family.samples += 1
    for (const [, label = ""] of labels.matchAll(/([a-z_]+)="(?:[^"\\]|\\.)*"/g)) {
      if (!FORMAT_LABELS.has(label)) family.labels.add(label)
    }
  }
  return families
}

const entryOf = (name: string): MetricEntry | undefined =>
  (metricTable as Readonly<Record<string, MetricEntry>>)[name]

/** Everything that is served is in the table, as it says. */
export const assertInTable = (text: string): void => {
  const served = familiesIn(text)
  const unknown = [...served.keys()].filter((name) => entryOf(name) === undefined)
  assert.deepStrictEqual(unknown, [], "metrics that the table does not have")
  for (const [name, { help, labels, samples, type }] of served) {
    const entry = entryOf(name)!
    assert.deepStrictEqual([type, help], [entry.type, entry.help], name)
    if (samples > 0) assert.sameMembers([...labels], Object.keys(entry.labels ?? {}), name)
  }
}

/** Everything in the table that is not said to come later, or elsewhere, is served. */
export const assertComplete = (text: string): void => {
  const served = familiesIn(text)
  const missing = Object.entries(metricTable).filter(
    ([name, { shown }]) => shown === undefined && (served.get(name)?.samples ?? 0) === 0
  )
  assert.deepStrictEqual(
    missing.map(([name]) => name),
    []
  )
}
