/** Which versions run, as far as the processes say. */
import { Card } from "../../parts/Basics.tsx"
import type { Metrics } from "../../state/Prometheus.ts"

/** Values of a label, each once. */
const valuesOf = (
  metrics: Metrics,
  name: string,
  label: string,
  isWanted: (labels: Readonly<Record<string, string>>) => boolean = () => true
): ReadonlyArray<string> => [
  ...new Set(
    (metrics.get(name) ?? [])
      .filter(({ labels }) => isWanted(labels))
      .flatMap(({ labels }) => labels[label] ?? [])
  )
]

const componentOf = (metrics: Metrics, component: string): ReadonlyArray<string> =>
  valuesOf(metrics, "alk_component_info", "version", (labels) => labels["component"] === component)

export const Versions = ({ metrics }: { readonly metrics: Metrics }) => {
  const rows = [
    ["alk", valuesOf(metrics, "alk_build_info", "version"), ""],
    ["Node", valuesOf(metrics, "alk_build_info", "node"), ""],
    ["ClickHouse", componentOf(metrics, "clickhouse"), "of another process"],
    ["Kafka", componentOf(metrics, "kafka"), "known of the embedded broker only"]
  ] as const
  return (
    <Card title="Versions">
      <dl class="health-facts">
        {rows.map(([name, versions, why]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {versions.length === 0 ? (
                <span class="faint">unknown{why === "" ? "" : `: ${why}`}</span>
              ) : (
                <code>{versions.join(", ")}</code>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  )
}
