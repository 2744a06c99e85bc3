/** What the pages name is there: links, files, settings, routes, metrics, scripts, packages. */
import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { assert, describe, it } from "vitest"
import { configHelp } from "../../src/config/ConfigHelp.ts"
import { openApiDocument } from "../../src/http/Api.ts"
import { blocks, pages, proseOf, textOf } from "./Pages.ts"

const LANGUAGES = ["sh", "json", "ts", "sql", "text", "mermaid"]

/** Settings that Kafka's image or OpenTelemetry read, and names that stand for others. */
const FOREIGN_SETTINGS = /^(?:OTEL_|KAFKA_(?!BROKERS|TLS|SASL))/

/** How GitHub makes the anchor of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[`*]/g, "")
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .trim()
    .replaceAll(" ", "-")

const anchorsOf = (page: string): ReadonlyArray<string> =>
  [...proseOf(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading!))

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

const isWrongLink = (page: string, target: string): boolean => {
  if (/^https?:/.test(target)) return false
  const [path = "", anchor] = target.split("#")
  const file = path === "" ? page : normalize(join(dirname(page), path))
  if (!existsSync(file)) return true
  return anchor !== undefined && !anchorsOf(file).includes(anchor)
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
    const known = new Set(
      configHelp()
        .match(/^ {2}[A-Z][A-Z_0-9]+/gm)!
        .map((name) => name.trim())
    )
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

  it("use blocks of known languages only", () => {
    assert.deepStrictEqual(
      blocks
        .filter(({ language }) => !LANGUAGES.includes(language))
        .map(({ language, line, page }) => `${page}:${line}: ${language}`),
      []
    )
  })

  it("lead from the README to each of them", () => {
    const found = new Set(["README.md"])
    for (const page of found) {
      for (const [, target] of proseOf(page).matchAll(/\]\(([^)\s#]+\.md)[^)]*\)/g)) {
        const file = normalize(join(dirname(page), target!))
        if (pages.includes(file)) found.add(file)
      }
    }
    assert.sameMembers([...found], [...pages])
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
