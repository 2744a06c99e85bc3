/**
 * Writes `schemas/openapi.json` from the contract: `node src/http/writeOpenApi.ts`. A test keeps
 * the file equal to what this would write.
 */
import { writeFileSync } from "node:fs"
import { openApiText } from "./Api.ts"

writeFileSync(new URL("../../schemas/openapi.json", import.meta.url), openApiText())
