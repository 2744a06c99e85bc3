/** What has to compile, and what must not, of events with and without a catalogue of actions. */
import { catalogue, createClient } from "../../src/client/index.ts"

const connection = { url: "http://127.0.0.1:1", key: "k" }
const actor = { id: "ada", type: "human" } as const
const resource = { id: "doc-1", type: "document" } as const

export const anyAction = () => {
  const client = createClient(connection)
  client.log({ actor, action: "document.read", resource })
  client.log({ actor, action: "document.read", resource, outcome: "failure", metadata: { a: [1] } })
  // @ts-expect-error no such outcome
  client.log({ actor, action: "document.read", resource, outcome: "sucess" })
  // @ts-expect-error who it was is missing
  client.log({ action: "document.read", resource })
  // @ts-expect-error whether it was a person is missing
  client.log({ actor: { id: "ada" }, action: "document.read", resource })
}

export const knownActions = () => {
  const client = createClient({
    ...connection,
    actions: catalogue({
      "user.login": { metadata: { ip: "string", attempt: "number?" } },
      "document.read": { resource: "document" },
      "job.done": { description: "A job has ended.", metadata: { note: "string?" } }
    })
  })
  client.log({ actor, action: "user.login", resource, metadata: { ip: "192.0.2.7" } })
  client.log({ actor, action: "user.login", resource, metadata: { ip: "192.0.2.7", attempt: 2 } })
  client.log({ actor, action: "document.read", resource })
  client.log({ actor, action: "document.read", resource, metadata: { anything: true } })
  client.log({ actor, action: "job.done", resource })
  // @ts-expect-error misspelt
  client.log({ actor, action: "user.logn", resource, metadata: { ip: "192.0.2.7" } })
  // @ts-expect-error the address is missing
  client.log({ actor, action: "user.login", resource, metadata: {} })
  // @ts-expect-error metadata is missing
  client.log({ actor, action: "user.login", resource })
  // @ts-expect-error no number
  client.log({ actor, action: "user.login", resource, metadata: { ip: "a", attempt: "2" } })
  // @ts-expect-error another kind of resource
  client.log({ actor, action: "document.read", resource: { id: "u", type: "user" } })
  // @ts-expect-error no such member
  client.log({ actor, action: "job.done", resource, metadata: { nte: "a" } })
  return client.record({ actor, action: "document.read", resource })
}
