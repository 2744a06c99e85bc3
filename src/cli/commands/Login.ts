/** `alk login`: keeps address and key of a service, after it has tried them. */
import type { Me } from "../../client/gen/Api.d.ts"
import {
  type Choice,
  type Context,
  contextsFile,
  DEFAULT_URL,
  readContexts,
  requireContext,
  withContext,
  writeContexts
} from "../Contexts.ts"
import { usage } from "../Failure.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { ask, standardInput } from "../terminal/Prompt.ts"
import { details } from "../terminal/Table.ts"

interface LoginOptions extends OutputOptions, Choice {
  readonly show?: boolean
  readonly logout?: boolean
}

const meOf = async (context: Context): Promise<Me> => {
  const { createClient } = await import("../../client/Client.ts")
  return createClient(context).request("GET /v1/me")
}

const given = async ({ url }: LoginOptions): Promise<Context> => {
  if (process.stdin.isTTY === true) {
    const question = `Address of the service [${DEFAULT_URL}]: `
    const address = url ?? ((await ask(question)) || DEFAULT_URL)
    return { url: address, key: await ask("API key (it is not shown): ", true) }
  }
  return { url: url ?? process.env["ALK_URL"] ?? DEFAULT_URL, key: (await standardInput()).trim() }
}

const show = (options: LoginOptions): Promise<void> =>
  withOutput(options, async (output) => {
    const context = requireContext(options)
    const { key, scopes, tenant_id } = await meOf(context)
    const facts = { url: context.url, tenant_id, scopes, key_id: key.id }
    if (!output.isHuman) return output.document(facts)
    await output.write(
      details([
        ["service", context.url],
        ["tenant", tenant_id],
        ["scopes", scopes.join(", ")],
        ["key", key.id]
      ])
    )
  })

const logout = ({ context }: LoginOptions): void => {
  const file = contextsFile()
  const before = readContexts(file)
  const name = context ?? before.current
  if (before.contexts[name] === undefined) {
    throw usage(`context ${JSON.stringify(name)} is not in ${file}`)
  }
  const { [name]: _, ...contexts } = before.contexts
  const current = before.current === name ? (Object.keys(contexts)[0] ?? name) : before.current
  writeContexts(file, { current, contexts })
}

/** `alk login`. */
export const login = async (options: LoginOptions): Promise<void> => {
  if (options.show === true) return show(options)
  if (options.logout === true) return logout(options)
  const context = await given(options)
  if (context.key === "") throw usage("key: is empty", "alk login < file-with-the-key")
  const { scopes, tenant_id } = await meOf(context)
  const file = contextsFile()
  const name = options.context ?? "default"
  await withOutput(options, async (output) => {
    writeContexts(file, withContext(readContexts(file), name, context))
    output.note(`tenant ${tenant_id} (${scopes.join(", ")}) of ${context.url} is kept in ${file}`)
    if (!output.isHuman)
      await output.document({ context: name, tenant_id, scopes, url: context.url })
  })
}
