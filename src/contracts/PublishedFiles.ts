/**
 * The files that are made from the source, below `schemas/` and in evidence packs: their paths and
 * their content.
 */
import { BackupManifest } from "../domain/backup/BackupManifest.ts"
import { recordContracts } from "../domain/records/RecordContracts.ts"
import { OcsfEvent } from "../exports/ocsf/OcsfEvent.ts"
import { type PackSchema, packSchemas } from "../exports/pack/PackRecords.ts"
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

/** Of a line of `format=ocsf`. */
const ocsfSchema = () => {
  const { definitions, schema } = describe(OcsfEvent)
  return { $schema: DIALECT, $id: schemaId("ocsf-event"), ...schema, $defs: definitions }
}

/** Of the manifest of a backup. */
const backupSchema = () => {
  const { definitions, schema } = describe(BackupManifest)
  return { $schema: DIALECT, $id: schemaId("backup-manifest"), ...schema, $defs: definitions }
}

const packSchema = ({ isOpen = false, name, schema, title }: PackSchema) => {
  const described = describe(schema, isOpen)
  return {
    $schema: DIALECT,
    $id: `urn:alk:evidence-pack:v2:${name}`,
    title,
    ...described.schema,
    ...(Object.keys(described.definitions).length === 0 ? {} : { $defs: described.definitions })
  }
}

/** Content by path, relative to the repository. */
export const publishedFiles = (): ReadonlyMap<string, string> =>
  new Map([
    ...recordContracts.map((contract): readonly [string, string] => [
      `schemas/json/${contract.name}.schema.json`,
      json(jsonSchemaOf(contract))
    ]),
    ...packSchemas.map((schema): readonly [string, string] => [
      `src/exports/pack/schemas/${schema.name}.schema.json`,
      json(packSchema(schema))
    ]),
    ["schemas/criteria.schema.json", json(criteriaSchema())],
    ["schemas/ocsf-event.schema.json", json(ocsfSchema())],
    ["schemas/backup-manifest.schema.json", json(backupSchema())],
    ["schemas/criteria.json", json({ $schema: "criteria.schema.json", ...defaultMapping })],
    ["schemas/asyncapi.yaml", asyncApiYaml(defaultPlace)]
  ])
