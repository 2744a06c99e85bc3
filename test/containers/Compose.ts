/**
 * `docker/compose.yaml` as data: anchors merged, `${…}` filled in the way compose does. What tests
 * start and check is therefore what is published, without a compose program.
 */
import { readFileSync } from "node:fs"
import { parse } from "yaml"

export const COMPOSE_FILE = "docker/compose.yaml"
export const EXAMPLE_FILE = "docker/.env.example"

export interface Healthcheck {
  readonly disable?: boolean
  readonly test?: ReadonlyArray<string>
  readonly interval?: string
  readonly timeout?: string
  readonly retries?: number
  readonly start_period?: string
}

export interface Service {
  readonly image: string
  readonly build?: { readonly context: string; readonly dockerfile: string }
  readonly hostname?: string
  readonly environment: Readonly<Record<string, string>>
  readonly ports?: ReadonlyArray<string>
  readonly volumes?: ReadonlyArray<string>
  readonly restart: string
  readonly read_only?: boolean
  readonly healthcheck?: Healthcheck
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
}

export interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: Readonly<Record<string, unknown>>
}

type Environment = Readonly<Record<string, string>>

const REFERENCE = /\$\{([A-Z0-9_]+)(?::([-?])([^}]*))?\}/g

/** Compose stops on a variable that is required and has no value. */
const fill = (text: string, environment: Environment): string =>
  text.replace(REFERENCE, (_, name: string, rule: string | undefined, rest: string) => {
    const value = environment[name] ?? ""
    if (value !== "" || rule === undefined) return value
    if (rule === "?") throw new Error(`${name} ${rest}`)
    return rest
  })

const composeText = (): string => readFileSync(COMPOSE_FILE, "utf8")

/** The variables that the file takes from `.env`: whether they are required. */
export const references = (): ReadonlyMap<string, boolean> => {
  const found = new Map<string, boolean>()
  for (const [, name, rule] of composeText().matchAll(REFERENCE)) found.set(name!, rule === "?")
  return found
}

const fillAll = (value: unknown, environment: Environment): unknown => {
  if (typeof value === "string") return fill(value, environment)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((item) => fillAll(item, environment))
  const members = Object.entries(value)
  return Object.fromEntries(members.map(([name, member]) => [name, fillAll(member, environment)]))
}

export const readCompose = (environment: Environment): Compose =>
  fillAll(parse(composeText(), { merge: true }), environment) as Compose

/** Services that run the program, not somebody else's image. */
export const ownServices = ({ services }: Compose): ReadonlyArray<readonly [string, Service]> =>
  Object.entries(services).filter(([, { build }]) => build !== undefined)
