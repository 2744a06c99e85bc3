/** The client of a command: address and key of its context. */
import type { Client } from "../client/Client.ts"
import { type Choice, requireContext, resolveContext } from "./Contexts.ts"
import { CommandFailure, EXIT } from "./Failure.ts"

/** A client for what was chosen. Throws CommandFailure without a key. */
export const connect = async (choice: Choice): Promise<Client> => {
  const { createClient } = await import("../client/Client.ts")
  return createClient(requireContext(choice))
}

/** The admin token, from where the service takes it too. */
const adminToken = async (): Promise<string | undefined> => {
  const { readSecretFiles } = await import("../config/SecretFiles.ts")
  const { problems, values } = readSecretFiles(process.env, process.cwd(), ["ALK_ADMIN_TOKEN"])
  if (problems.length > 0) throw new CommandFailure(EXIT.usage, problems.join("; "))
  return values["ALK_ADMIN_TOKEN"] ?? process.env["ALK_ADMIN_TOKEN"]
}

/**
 * A client with the admin token of ALK_ADMIN_TOKEN or ALK_ADMIN_TOKEN_FILE, or else with the key of the
 * context.
 */
export const connectAsAdmin = async (choice: Choice): Promise<Client> => {
  const token = await adminToken()
  if (token === undefined || token === "") return connect(choice)
  const { createClient } = await import("../client/Client.ts")
  return createClient({ url: resolveContext(choice).url, key: token })
}
