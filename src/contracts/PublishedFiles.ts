/**
 * The files below `schemas/` that are made from the source: their paths and their content.
 */

import { recordContracts } from "../domain/records/RecordContracts.ts"
import { CriteriaMapping } from "../exports/report/Criteria.ts"
import { defaultMapping } from "../exports/report/DefaultMapping.ts"
import { asyncApiYaml, defaultPlace } from "./AsyncApi.ts"
import { DIALECT, describe, jsonSchemaOf, schemaId } from "./JsonSchema.ts"

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** Of the file that maps actions to criteria. */
const criteriaSchema = () => {
  const { definitions, schema } = describe(CriteriaMapping)
  return { $schema: DIALECT, $id: schemaId("criteria-mapping"), ...schema, $defs: definitions }
}

/** Content by path, relative to the repository. */
export const publishedFiles = (): ReadonlyMap<string, string> =>
  new Map([
    ...recordContracts.map((contract): readonly [string, string] => [
      `schemas/json/${contract.name}.schema.json`,
      json(jsonSchemaOf(contract))
    ]),
    ["schemas/criteria.schema.json", json(criteriaSchema())],
    ["schemas/criteria.json", json({ $schema: "criteria.schema.json", ...defaultMapping })],
    ["schemas/asyncapi.yaml", asyncApiYaml(defaultPlace)]
  ])
