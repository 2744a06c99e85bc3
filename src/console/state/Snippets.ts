/** How programs send their first event and their first spans to a service at an address. Pure. */

/** What every snippet needs before it: the key in the variable that the clients read. */
export const keyLine = "export ALK_API_KEY='alk_live_…'"

/** The header's value is percent-encoded in that variable, as OpenTelemetry has it. */
export const otlpLines = (url: string): string =>
  `export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT='${url}/v1/traces'\n`
  + `export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n`
  + `export OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20$ALK_API_KEY"`

/** The first event that is sent. */
export const firstEvent = {
  actor: { id: "alice", type: "human" },
  action: "document.read",
  resource: { id: "doc-1", type: "document" },
  outcome: "success"
}

const eventText = JSON.stringify(firstEvent)

/** As the client in Python takes actors and resources. */
const reference = ({ id, type }: { readonly id: string; readonly type: string }): string =>
  `${type}:${id}`

/** Each with the key in the environment. */
export const examples = (url: string): ReadonlyArray<readonly [name: string, text: string]> => [
  [
    "curl",
    `curl -X POST '${url}/v1/events?sync=true' \\\n`
      + `  -H "Authorization: Bearer $ALK_API_KEY" -H 'Content-Type: application/json' \\\n`
      + `  -d '${eventText}'`
  ],
  [
    "TypeScript",
    `// In a clone of alk; elsewhere after: npm install PATH_OF_THE_CLONE\n`
      + `import { createClient } from "alk/client"\n`
      + `const alk = createClient({ url: "${url}" })\n\n`
      + `const { sequence_number } = await alk.record(${JSON.stringify(firstEvent, null, 2)})\n`
      + `console.log(sequence_number)\n`
      + `await alk.close()`
  ],
  [
    "Python",
    `# In a clone of alk: pip install ./test/examples/python\n`
      + `from alk_client import AlkClient\n`
      + `alk = AlkClient(url="${url}")\n\n`
      + `receipt = alk.record(\n`
      + `    "${firstEvent.action}",\n`
      + `    actor="${reference(firstEvent.actor)}",\n`
      + `    resource="${reference(firstEvent.resource)}",\n`
      + `    outcome="${firstEvent.outcome}",\n`
      + `)\n`
      + `print(receipt.sequence_number)\n`
      + `alk.close()`
  ],
  ["OpenTelemetry", `${otlpLines(url)}\n# then start your instrumented program`]
]
