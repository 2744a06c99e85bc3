/**
 * Before every file: properties are tried with the values of one seed, so that each run of the tests
 * is the same. RunTiers.ts sets it; `TEST_SEED=random` has it draw another one.
 */
import { configureGlobal, readConfigureGlobal } from "fast-check"

export const SEED = Number(process.env["TEST_SEED"] ?? 1)

configureGlobal({ ...readConfigureGlobal(), seed: SEED })
