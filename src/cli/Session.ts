/** The client of a command: address and key of its context. */
import type { Client } from "../client/Client.ts"
import { type Choice, requireContext, resolveContext } from "./Contexts.ts"

/** A client for what was chosen. Throws CommandFailure without a key. */
export const connect = async (choice: Choice): Promise<Client> => {
  const { createClient } = await import("../client/Client.ts")
  return createClient(requireContext(choice))
}

/** A client with the admin token of ALK_ADMIN_TOKEN, or else with the key of the context. */
export const connectAsAdmin = async (choice: Choice): Promise<Client> => {
  const token = process.env["ALK_ADMIN_TOKEN"]
  if (token === undefined || token === "") return connect(choice)
  const { createClient } = await import("../client/Client.ts")
  return createClient({ url: resolveContext(choice).url, key: token })
}
