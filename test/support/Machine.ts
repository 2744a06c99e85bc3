/**
 * The parts that the whole run shares, started once: a real broker and a real ClickHouse engine, in
 * one process of the program in the role `store`. Every test has topics and a database of its own.
 */
import { rmSync } from "node:fs"
import type { TestProject } from "vitest/node"
import { freshFolder, start, TEST_SECRET } from "./Program.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly bootstrap: string
    readonly storeUrl: string
  }
}

const begin = async () => {
  const folder = freshFolder("machine")
  const machine = await start({
    ALK_ROLES: "store",
    ALK_DATA_DIR: folder,
    ALK_SECRET: TEST_SECRET,
    ALK_EMBEDDED_OPEN: "true"
  })
  const end = async (): Promise<void> => {
    await machine.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  return { machine, end }
}

/** Each tier imports this file for itself, so what they share is kept outside of it. */
const shared = globalThis as unknown as {
  alkMachine?: { readonly begun: ReturnType<typeof begin>; users: number } | undefined
}

export default async ({ provide }: TestProject): Promise<() => Promise<void>> => {
  const one = (shared.alkMachine ??= { begun: begin(), users: 0 })
  one.users++
  const { end, machine } = await one.begun
  provide("bootstrap", machine.kafka)
  provide("storeUrl", machine.store)
  return async () => {
    one.users--
    if (one.users > 0) return
    shared.alkMachine = undefined
    await end()
  }
}
