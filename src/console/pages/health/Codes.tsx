/** What was refused: items by code, requests by status; since the start and in the last minute. */
import type { ComponentChildren } from "preact"
import { Card, Empty, Scrolls } from "../../parts/Basics.tsx"
import { count } from "../../parts/Format.ts"
import { byLabel, type Reading, sumOf } from "../../state/Prometheus.ts"
import { increase, readingBefore } from "./HealthRules.ts"

const INTERVAL_MS = 60_000

interface Row {
  readonly key: string
  readonly sum: number
  /** In the last minute; undefined while it is unknown. */
  readonly recent: number | undefined
}

const rowsOf = (
  readings: ReadonlyArray<Reading>,
  [name, label]: readonly [name: string, label: string],
  isShown: (key: string) => boolean
): ReadonlyArray<Row> => {
  const [before, after] = [readingBefore(readings, INTERVAL_MS), readings.at(-1)]
  if (after === undefined) return []
  return byLabel(after.metrics, name, label)
    .filter(([key]) => isShown(key))
    .map(([key, sum]) => ({
      key,
      sum,
      recent:
        before === undefined
          ? undefined
          : increase(before, after, name, (labels) => labels[label] === key)
    }))
}

const Table = ({
  children,
  head,
  label,
  rows
}: {
  readonly label: string
  readonly head: string
  readonly rows: ReadonlyArray<Row>
  /** Where there are none. */
  readonly children: ComponentChildren
}) =>
  rows.length === 0 ? (
    <div>{children}</div>
  ) : (
    <Scrolls label={`${label}, as a table`}>
      <table>
        <thead>
          <tr>
            <th scope="col">{head}</th>
            <th scope="col" class="number">
              last minute
            </th>
            <th scope="col" class="number">
              since the start
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, recent, sum }) => (
            <tr key={key}>
              <td>
                <code>{key}</code>
              </td>
              <td class="number">{recent === undefined ? "–" : count(recent)}</td>
              <td class="number">{count(sum)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolls>
  )

export const Codes = ({ readings }: { readonly readings: ReadonlyArray<Reading> }) => {
  const items = rowsOf(readings, ["alk_ingest_rejected_items_total", "code"], () => true)
  const isError = (status: string): boolean => /^[45]/.test(status)
  const requests = rowsOf(readings, ["alk_http_requests_total", "status"], isError)
  const newest = readings.at(-1)?.metrics ?? new Map()
  const keys = sumOf(newest, "alk_http_failed_credentials_total") ?? 0
  return (
    <div class="columns">
      <Card title="Refused items by code">
        <Table label="Refused items by code" head="Code" rows={items}>
          <Empty title="None since the start">
            <p>Items that validation or the sequencer refuses are counted here.</p>
          </Empty>
        </Table>
      </Card>
      <Card title="Failed requests by status">
        <Table label="Failed requests by status" head="Status" rows={requests}>
          <Empty title="None since the start">
            <p>Answers with 4xx and 5xx are counted here.</p>
          </Empty>
        </Table>
        <p class="faint">Wrong keys and tokens since the start: {count(keys)}.</p>
      </Card>
    </div>
  )
}
