/** Reads the settings as the program does at its start, and starts nothing. Ends with 1 if one is wrong. */
import { Effect } from "effect"
import { loadConfig } from "../../src/config/ParseConfig.ts"

const { roles } = Effect.runSync(loadConfig)
console.log(`the settings hold for ${roles.join(", ")}`)
