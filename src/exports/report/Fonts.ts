/**
 * The typefaces that reports are set in, and the style sheet that embeds of them what one text
 * needs. What no face has a glyph for is said, so that it can be written as a code point instead of
 * an empty box.
 */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { forEachCharacter } from "./FontFile.ts"

interface Family {
  readonly name: string
  readonly package: string
  /** The regular weight first. */
  readonly weights: ReadonlyArray<number>
}

/** In the order in which a character looks for its glyph. */
const SANS: ReadonlyArray<Family> = [
  { name: "Noto Sans", package: "@fontsource/noto-sans", weights: [400, 600] },
  { name: "Noto Sans Arabic", package: "@fontsource/noto-sans-arabic", weights: [400] },
  { name: "Noto Sans Hebrew", package: "@fontsource/noto-sans-hebrew", weights: [400] },
  { name: "Noto Sans Thai", package: "@fontsource/noto-sans-thai", weights: [400] },
  { name: "Noto Sans SC", package: "@fontsource/noto-sans-sc", weights: [400] },
  // All syllables of Hangul in 5 MB; Noto Sans KR has 54 MB, most of it ideographs that SC has.
  { name: "Gowun Dodum", package: "@fontsource/gowun-dodum", weights: [400] }
]
const MONO: Family = {
  name: "Noto Sans Mono",
  package: "@fontsource/noto-sans-mono",
  weights: [400]
}

const familyList = (families: ReadonlyArray<Family>): string =>
  families.map(({ name }) => `"${name}"`).join(", ")

/** For `font-family`. */
export const SANS_STACK = familyList(SANS)
export const MONO_STACK = familyList([MONO, ...SANS])

const REGULAR = 400
const CODE_POINTS = 0x110000
/** Names of files hold the subset between family and weight. */
const FILE_FORM = /^(.+)-400-normal\.woff$/

/** Nearly every file has a space; Latin, which is always there, is to give it. */
const isLatin = (name: string): boolean => name.includes("-latin-400-")

/** One file of a family: some of its characters. */
interface Subset {
  readonly family: Family
  /** Path without weight and ending. */
  readonly stem: string
}

/** Subset by character, 0 for none. */
interface Coverage {
  readonly subsets: ReadonlyArray<Subset>
  readonly places: Uint16Array
}

const subsetsOf = (family: Family): ReadonlyArray<Subset> => {
  // Beside style sheets, the licence is the one file that these packages let others resolve.
  const licence = fileURLToPath(import.meta.resolve(`${family.package}/LICENSE`))
  const folder = join(dirname(licence), "files")
  return readdirSync(folder)
    .sort((left, right) =>
      isLatin(left) === isLatin(right) ? (left < right ? -1 : 1) : isLatin(left) ? -1 : 1
    )
    .flatMap((name) => {
      const stem = FILE_FORM.exec(name)?.[1]
      return stem === undefined ? [] : [{ family, stem: join(folder, stem) }]
    })
}

const coverageOf = (families: ReadonlyArray<Family>): Coverage => {
  const subsets = families.flatMap(subsetsOf)
  const places = new Uint16Array(CODE_POINTS)
  for (const [index, { stem }] of subsets.entries()) {
    forEachCharacter(readFileSync(`${stem}-${REGULAR}-normal.woff`), (codePoint) => {
      if (places[codePoint] === 0) places[codePoint] = index + 1
    })
  }
  return { subsets, places }
}

/** Some 250 files and 5 MB of tables: read when the first report is made, kept from then on. */
let known: { readonly sans: Coverage; readonly mono: Coverage } | undefined

const coverage = () => (known ??= { sans: coverageOf(SANS), mono: coverageOf([MONO]) })

/** True if a report can show the character. */
export const hasGlyph = (codePoint: number): boolean => coverage().sans.places[codePoint] !== 0

/** `U+41-43,U+61` of ascending code points. */
const rangesOf = (codePoints: ReadonlyArray<number>): string => {
  const ranges: Array<[number, number]> = []
  for (const codePoint of codePoints) {
    const last = ranges.at(-1)
    if (last !== undefined && codePoint === last[1] + 1) last[1] = codePoint
    else ranges.push([codePoint, codePoint])
  }
  return ranges
    .map(([from, to]) => `U+${from.toString(16)}${to > from ? `-${to.toString(16)}` : ""}`)
    .join(",")
}

const faceOf = ({ family, stem }: Subset, weight: number, ranges: string): string => {
  const data = readFileSync(`${stem}-${weight}-normal.woff2`).toString("base64")
  return (
    `@font-face{font-family:"${family.name}";font-style:normal;font-weight:${weight};`
    + `src:url(data:font/woff2;base64,${data}) format("woff2");unicode-range:${ranges}}\n`
  )
}

const ascending = (codePoints: Iterable<number>): Array<number> =>
  [...new Set(codePoints)].sort((left, right) => left - right)

/** What a character may be drawn by: the shaper asks the face for these, as for Thai sara am. */
const partsOf = (codePoint: number): ReadonlyArray<number> =>
  Array.from(String.fromCodePoint(codePoint).normalize("NFKD"), (part) => part.codePointAt(0)!)

const facesFor = ({ places, subsets }: Coverage, used: ReadonlyArray<number>): string => {
  const bySubset = new Map<number, Array<number>>()
  for (const codePoint of used) {
    const place = places[codePoint] ?? 0
    if (place === 0) continue
    const list = bySubset.get(place)
    if (list === undefined) bySubset.set(place, [codePoint])
    else list.push(codePoint)
  }
  for (const [place, codePoints] of bySubset) {
    const parts = codePoints.flatMap(partsOf).filter((part) => places[part] === place)
    bySubset.set(place, ascending([...codePoints, ...parts]))
  }
  return [...bySubset]
    .sort(([left], [right]) => left - right)
    .flatMap(([place, codePoints]) => {
      const subset = subsets[place - 1]!
      return subset.family.weights.map((weight) => faceOf(subset, weight, rangesOf(codePoints)))
    })
    .join("")
}

/** ASCII is in every report, whatever the text: in its page numbers and captions. */
const ALWAYS = Array.from({ length: 0x7f - 0x20 }, (_, index) => 0x20 + index)

/** `@font-face` rules for every character of the texts that a face has, and no other. */
export const fontFaces = (texts: ReadonlyArray<string>): string => {
  const used = new Set(ALWAYS)
  for (const text of texts) for (const character of text) used.add(character.codePointAt(0)!)
  const inOrder = ascending(used)
  const { mono, sans } = coverage()
  return facesFor(sans, inOrder) + facesFor(mono, inOrder)
}
