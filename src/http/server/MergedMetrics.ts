/**
 * The metrics of several processes as one text: each sample with a label that says whose it is, each
 * family once. Knows the text format of Prometheus only as far as its lines.
 */

/** What one process has counted. */
export interface ProcessMetrics {
  /** 0 is the first process. */
  readonly worker: number
  readonly text: string
}

const labelled = (sample: string, worker: number): string => {
  const [, name = "", labels, rest = ""] = /^([^{ ]+)(?:\{(.*)\})?( .*)$/.exec(sample) ?? []
  const own = `worker="${worker}"`
  return `${name}{${labels === undefined || labels === "" ? own : `${own},${labels}`}}${rest}`
}

/** The lines of a family: what it is, then its samples. */
interface Family {
  readonly about: Array<string>
  readonly samples: Array<string>
}

/** One text; `worker` is the label. */
export const mergedMetrics = (processes: ReadonlyArray<ProcessMetrics>): string => {
  const families = new Map<string, Family>()
  for (const { text, worker } of processes) {
    let family: Family | undefined
    /** The first process with a family says what it is. */
    let isNew = false
    for (const line of text.split("\n")) {
      const [, name] = /^# (?:HELP|TYPE) (\S+)/.exec(line) ?? []
      if (name !== undefined) {
        const known = families.get(name)
        if (known !== family || known === undefined) isNew = known === undefined
        family = known ?? { about: [], samples: [] }
        families.set(name, family)
        if (isNew) family.about.push(line)
      } else if (line !== "") {
        family?.samples.push(labelled(line, worker))
      }
    }
  }
  const lines = [...families.values()].flatMap(({ about, samples }) => [...about, ...samples])
  return `${lines.join("\n")}\n`
}
