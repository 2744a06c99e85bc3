/** Which versions of other programs an installation runs, as `/metrics` shows them. */
import { type Effect, Metric } from "effect"
import { gaugeOf } from "../domain/metrics/Metrics.ts"

const componentInfo = gaugeOf("alk_component_info")

/** Says that this program runs in this version. */
export const componentRuns = (
  component: "clickhouse" | "kafka",
  version: string
): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(componentInfo, { component, version }), 1)
