/** The types of what the API takes and answers, out of the OpenAPI document. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Fields, parseJson } from "../domain/json/Json.ts"

/** The generator needs the compiler that it was written for. */
const HOOK = new URL("typescript5.mjs", import.meta.url).href
const CLI = "node_modules/openapi-typescript/bin/cli.js"
const FLAGS = ["--root-types", "--root-types-no-schema-prefix", "--immutable"]

/** Where the client and the console import them from. */
export const API_TYPES_FILE = "src/client/gen/Api.d.ts"

/** A schema without its examples; names of properties may be any. */
const withoutExamples = (schema: unknown, areNames = false): unknown => {
  if (Array.isArray(schema)) return schema.map((item) => withoutExamples(item))
  if (typeof schema !== "object" || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([name]) => areNames || (name !== "example" && name !== "examples"))
      .map(([name, value]) => [name, withoutExamples(value, !areNames && name === "properties")])
  )
}

/** The declarations of a document. */
export const apiTypes = (openApi: string): string => {
  const folder = mkdtempSync(join(tmpdir(), "alk-types-"))
  try {
    const [document, types] = [join(folder, "openapi.json"), join(folder, "Api.d.ts")]
    // The schemas alone: with every parameter and refusal of every route they are ten times as long.
    const schemas = withoutExamples({ ...(parseJson(openApi) as Fields), paths: {} })
    writeFileSync(document, JSON.stringify(schemas))
    const args = ["--import", HOOK, CLI, document, "--output", types, ...FLAGS]
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" })
    if (status !== 0) throw new Error(`openapi-typescript: ${stderr}`)
    return readFileSync(types, "utf8")
  } finally {
    rmSync(folder, { recursive: true })
  }
}
