/**
 * The files below `schemas/` that are made from the source: their paths and what has to stand in
 * them. Writes nothing; `write.ts` does, and a test compares.
 */
import { asyncApiYaml, defaultPlace } from "./AsyncApi.ts"
import { jsonSchemaOf } from "./JsonSchema.ts"
import { recordContracts } from "./RecordContracts.ts"

/** Content by path, relative to the repository. */
export const publishedFiles = (): ReadonlyMap<string, string> =>
  new Map([
    ...recordContracts.map((contract): readonly [string, string] => [
      `schemas/json/${contract.name}.schema.json`,
      `${JSON.stringify(jsonSchemaOf(contract), null, 2)}\n`
    ]),
    ["schemas/asyncapi.yaml", asyncApiYaml(defaultPlace)]
  ])
