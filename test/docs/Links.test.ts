/**
 * There are exactly the pages that there should be, and what they name is there: links, files,
 * settings, routes, metrics, scripts, packages.
 */
import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { assert, describe, it } from "vitest"
import { configHelp } from "../../src/config/ConfigHelp.ts"
import { fileNameOf, secretNames } from "../../src/config/SecretFiles.ts"
import { openApiDocument } from "../../src/http/Api.ts"
import { anchorsOf } from "../../src/http/docs/Markdown.ts"
import { GUIDE, pages, proseOf, REFERENCE, textOf } from "./Pages.ts"

/** Settings that clients, Kafka's image or OpenTelemetry read, and names that stand for others. */
const FOREIGN_SETTINGS = /^(?:ALK_URL$|ALK_API_KEY$|ALK_CONTEXT$|OTEL_|KAFKA_(?!BROKERS|TLS|SASL))/

/** Lines of a page that is read from its beginning. */
const LINES_MAX = 275

/** What stands between backticks. */
const codeOf = (page: string): ReadonlyArray<string> =>
  [...proseOf(page).matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!)

/** What `wrong` finds on each page, as lines that name the page. */
const assertNone = (
  wrong: (page: string) => ReadonlyArray<string>,
  among: ReadonlyArray<string> = pages
): void => {
  assert.deepStrictEqual(
    among.flatMap((page) => wrong(page).map((one) => `${page}: ${one}`)),
    []
  )
}

/** Files of this repository that a page links to; pictures are links too. */
const linksOf = (page: string): ReadonlyArray<string> =>
  [...proseOf(page).matchAll(/\]\(([^)\s#]+)[^)]*\)/g)]
    .filter(([, target]) => !/^https?:/.test(target!))
    .map(([, target]) => normalize(join(dirname(page), target!)))

const isWrongLink = (page: string, target: string): boolean => {
  if (/^https?:/.test(target)) return false
  const [path = "", anchor] = target.split("#")
  const file = path === "" ? page : normalize(join(dirname(page), path))
  if (!existsSync(file)) return true
  return anchor !== undefined && !anchorsOf(textOf(file)).has(anchor)
}

const sourceFiles = globSync("{src,test,docker,.ci}/**/*", { withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
  .filter((file) => /\.(?:ts|mjs|py|html|yaml)$/.test(file) && !file.includes("/gen/"))

describe("the pages", () => {
  it("lead to files and headings that are there", () => {
    assertNone((page) =>
      [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, target]) => target!)
        .filter((target) => isWrongLink(page, target))
    )
  })

  it("name files that are there", () => {
    // The architecture names files from `src` on, schemas/README.md from its own folder on.
    const places = (page: string, path: string) => [
      path,
      join("src", path),
      join(dirname(page), path)
    ]
    assertNone((page) =>
      codeOf(page)
        .filter((code) => /^[\w.-]+(?:\/[\w.-]+)+\.(?:ts|mts|mjs|py|sql|md|json|yaml)$/.test(code))
        .filter((code) => !places(page, code).some((place) => existsSync(place)))
    )
    assertNone((page) =>
      codeOf(page)
        .filter((code) => /^(?:src|test|docs|schemas|docker)\/[\w./-]*$/.test(code))
        .filter((code) => !existsSync(code))
    )
  })

  it("name settings that there are", () => {
    const known = new Set([
      ...configHelp()
        .match(/^ {2}[A-Z][A-Z_0-9]+/gm)!
        .map((name) => name.trim()),
      ...secretNames.map(fileNameOf)
    ])
    assertNone((page) =>
      [
        ...new Set(textOf(page).match(/\b(?:ALK|KAFKA|CLICKHOUSE|CHROMIUM)_[A-Z_]*[A-Z]\b/g))
      ].filter((name) => !known.has(name) && !FOREIGN_SETTINGS.test(name))
    )
  })

  it("name routes that there are", () => {
    const { paths } = openApiDocument() as { paths: Record<string, Record<string, unknown>> }
    assertNone((page) =>
      codeOf(page).filter((code) => {
        const [, method, path] = /^(GET|POST|PUT|DELETE) (\/[^?\s]*)/.exec(code) ?? []
        return method !== undefined && paths[path!]?.[method.toLowerCase()] === undefined
      })
    )
  })

  it("name metrics that there are", () => {
    const source = globSync("src/**/*.ts")
      .map((file) => readFileSync(file, "utf8"))
      .join("\n")
    assertNone((page) =>
      [
        ...new Set(
          textOf(page).match(/\balk_[a-z_]+_(?:total|seconds|rows|records|commands|tenants)\b/g)
        )
      ].filter((name) => !source.includes(`"${name}"`))
    )
  })

  it("name scripts that there are", () => {
    const { scripts } = JSON.parse(readFileSync("package.json", "utf8"))
    assertNone((page) =>
      [...textOf(page).matchAll(/\bnpm run (?:-s |--silent )?([a-z:]+)/g)]
        .map(([, name]) => name!)
        .filter((name) => scripts[name] === undefined)
    )
  })

  it("lead from the README to each of them", () => {
    const found = new Set(["README.md"])
    for (const page of found) {
      for (const file of linksOf(page)) if (pages.includes(file)) found.add(file)
    }
    assert.sameMembers([...found], [...pages])
  })
})

describe("the folder docs", () => {
  it("has the twelve pages, the reference pages and the decisions", () => {
    const found = globSync("docs/**/*.md").filter((page) => !page.startsWith("docs/decisions/"))
    assert.sameMembers(found, [...GUIDE, ...REFERENCE])
    assert.lengthOf(GUIDE, 12)
  })

  it("has no file that no other page links to", () => {
    const linked = new Set(pages.flatMap((page) => linksOf(page).filter((file) => file !== page)))
    const files = globSync("docs/**/*", { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
    assert.deepStrictEqual(
      files.filter((file) => !linked.has(file)),
      []
    )
  })

  it("has pages that begin with their title and one sentence, and end before they are long", () => {
    assertNone((page) => {
      const [title = "", first, sentence = "", second] = textOf(page).split("\n")
      return [
        ...(/^# \S/.test(title) && first === "" ? [] : ["the first line is no title"]),
        ...(/^[A-Z].*\.$/.test(sentence) && second === ""
          ? []
          : ["no sentence of one line follows"]),
        ...(textOf(page).split("\n").length > LINES_MAX ? [`more than ${LINES_MAX} lines`] : [])
      ]
    }, GUIDE)
  })
})

describe("the README", () => {
  it("says of each package why it is there", () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync("package.json", "utf8"))
    const rows = textOf("README.md")
      .split("\n")
      .filter((line) => line.startsWith("| `"))
    const named = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, name]) => name!))
    const isNamed = (name: string) =>
      named.some(
        (one) =>
          one === name
          || name === `@opentelemetry/${one}`
          || (one.startsWith("-") && name === `@fontsource/noto-sans${one}`)
      )
    const names = Object.keys({ ...dependencies, ...devDependencies })
    assert.deepStrictEqual(
      names.filter((name) => !isNamed(name)),
      []
    )
  })

  it("is no longer than a newcomer reads", () => {
    assert.isAtMost(textOf("README.md").split("\n").length, 160)
  })
})

describe("comments and texts of the source", () => {
  it("name files that are there", () => {
    assertNone(
      (file) =>
        (
          readFileSync(file, "utf8").match(
            /(?<![\w./@-])(?:src|test|docs|schemas)\/[\w./-]+\.(?:ts|md|mjs|py|sql|json|yaml)\b/g
          ) ?? []
        ).filter((path) => !existsSync(path)),
      sourceFiles
    )
  })

  it("name documents that are there", () => {
    const documents = new Set(pages.map((page) => page.split("/").at(-1)!))
    assertNone(
      (file) =>
        (readFileSync(file, "utf8").match(/(?<![\w./:-])[\w-]+\.md\b/g) ?? []).filter(
          (name) => !documents.has(name)
        ),
      sourceFiles
    )
  })
})
