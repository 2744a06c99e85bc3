/** Many changed packs before all verifiers: what each says, and where they differ. */
import { basePacks, type Mutant, mutantOf } from "./PackCorpus.ts"
import { VerifierServers } from "./VerifierServers.ts"
import { problemsOf, type Report, Verifiers } from "./Verifiers.ts"

export interface Agreement {
  /** Packs by verdict. */
  readonly verdicts: Readonly<Record<string, number>>
  /** Packs that the page was asked about, too. */
  readonly pages: number
  /** A sentence each. */
  readonly disagreements: ReadonlyArray<string>
  /** Packs that were changed and not signed again, and that no verifier objected to. */
  readonly unnoticed: ReadonlyArray<string>
}

/** All that a report says; of an unreadable pack nothing but that. */
const essence = (report: Report): string =>
  report.verdict === "unreadable" ? "unreadable" : JSON.stringify(report, null, 1)

/** What to show of a report: its verdict and the first problems. */
const shortly = (report: Report): string =>
  `${report.verdict} ${problemsOf(report).slice(0, 3).join(", ")} `
  + (report.verdict === "unreadable" ? report.message : "")

const firstDifference = (left: string, right: string): string => {
  const [lines, others] = [left.split("\n"), right.split("\n")]
  const at = lines.findIndex((line, index) => line !== others[index])
  return `${lines[at]?.trim()} | ${others[at]?.trim()}`
}

/** Check the packs of the seeds `from` to, exclusive, `to`; each `pageEvery`th in the page, too. */
export const agreementOf = async (
  from: number,
  to: number,
  pageEvery: number
): Promise<Agreement> => {
  const bases = await basePacks()
  const verifiers = await Verifiers.open()
  const servers = new VerifierServers(verifiers)
  const verdicts: Record<string, number> = {}
  const disagreements: Array<string> = []
  const unnoticed: Array<string> = []
  let pages = 0
  const checkOne = async (mutant: Mutant) => {
    const { isChanged, isSigned, kept, key, seed, story, zip } = mutant
    const path = verifiers.file("mutant.zip", zip)
    const keptPaths = kept.map((note, at) => verifiers.file(`kept-${at}.txt`, note))
    const runs = await servers.check([
      path,
      "--json",
      ...(key === undefined ? [] : ["--public-key", key]),
      ...keptPaths.flatMap((one) => ["--checkpoint", one])
    ])
    const own = runs[0]!.report
    const others: Array<{ readonly name: string; readonly report: Report }> = [...runs.slice(1)]
    if (seed % pageEvery === 0) {
      pages += 1
      const options = { kept: keptPaths, ...(key === undefined ? {} : { key }) }
      const text = JSON.stringify(await verifiers.page.check(path, options))
      const named = keptPaths.reduce((all, one, at) => all.replaceAll(`kept-${at}.txt`, one), text)
      others.push({ name: "verify.html", report: JSON.parse(named) as Report })
    }
    verdicts[own.verdict] = (verdicts[own.verdict] ?? 0) + 1
    const isAccepted = own.verdict === "authentic" || own.verdict === "consistent"
    if (isAccepted && isChanged && !isSigned) unnoticed.push(`seed ${seed} (${story})`)
    for (const { name, report } of others) {
      if (essence(report) === essence(own)) continue
      const difference = firstDifference(essence(own), essence(report))
      disagreements.push(
        `seed ${seed} (${story}): ${shortly(own)} / ${name}: ${shortly(report)} [${difference}]`
      )
    }
  }
  try {
    for (let seed = from; seed < to; seed++) await checkOne(mutantOf(seed, bases))
  } finally {
    servers.close()
    await verifiers.close()
  }
  return { verdicts, pages, disagreements, unnoticed }
}
