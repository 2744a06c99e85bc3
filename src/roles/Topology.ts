/**
 * What a process has to start, and to reach, for the roles of its configuration. Starts nothing.
 */
import type { Config, Role } from "../config/Config.ts"

export const has = (config: Config, ...wanted: ReadonlyArray<Role>): boolean =>
  wanted.some((role) => config.roles.includes(role))

export const embedsBroker = ({ kafka }: Config): boolean => kafka._tag === "Embedded"

/** A process that can do nothing without the store: it waits for it, and upgrades its schema. */
export const needsStore = (config: Config): boolean => has(config, "api", "projection", "store")

/** True if this process opens the embedded store. */
export const embedsStore = (config: Config): boolean =>
  config.clickhouse._tag === "Embedded" && needsStore(config)

export const usesLog = (config: Config): boolean => has(config, "api", "sequencer", "projection")

/** A sequencer looks up what it has evicted, where and when it can reach a store. */
export const usesStore = (config: Config): boolean =>
  needsStore(config) || (has(config, "sequencer") && config.clickhouse._tag === "External")

/** The embedded parts keep their data in the folder; without them the process has none. */
export const ownsFolder = (config: Config): boolean => embedsBroker(config) || embedsStore(config)
