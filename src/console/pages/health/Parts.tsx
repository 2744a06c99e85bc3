/** Whether a write would commit and a list would answer, part by part, as a probe has found out. */
import { Ago, Card, State } from "../../parts/Basics.tsx"
import type { Tone } from "../../parts/Mark.tsx"
import type { ReadinessReading } from "../../state/HealthReadings.ts"

const names = {
  kafka: "Log (Kafka)",
  sequencer: "Sequencer",
  projection: "Projection",
  clickhouse: "Store (ClickHouse)",
  follower: "Follower of the log"
} as const

interface Part {
  readonly state: string
  readonly partitions?: ReadonlyArray<number>
  readonly reason?: string
}

const toneOf = (state: string, isDoubted: boolean): Tone =>
  state !== "ready" ? "bad" : isDoubted ? "plain" : "good"

const PartRow = ({
  isDoubted,
  name,
  part
}: {
  readonly name: string
  readonly part: Part | undefined
  readonly isDoubted: boolean
}) => (
  <div>
    <dt>{name}</dt>
    <dd>
      {part === undefined ? (
        <State tone="plain">unknown</State>
      ) : (
        <State tone={toneOf(part.state, isDoubted)}>{part.state}</State>
      )}
      {part?.partitions === undefined ? undefined : (
        <span class="faint note">Waiting: partitions {part.partitions.join(", ")}</span>
      )}
      {part?.reason === undefined ? undefined : <span class="faint note">{part.reason}</span>}
    </dd>
  </div>
)

export const Parts = ({
  isDoubted,
  reading
}: {
  readonly reading: ReadinessReading | undefined
  readonly isDoubted: boolean
}) => (
  <Card
    title="Parts"
    aside={
      reading === undefined ? undefined : (
        <span class="faint">
          tried <Ago at={reading.at} />
        </span>
      )
    }
  >
    <dl class="health-facts">
      <div>
        <dt>Service</dt>
        <dd>
          {reading === undefined ? (
            <State tone="plain">unknown</State>
          ) : (
            <State tone={toneOf(reading.body.status, isDoubted)}>{reading.body.status}</State>
          )}
        </dd>
      </div>
      {Object.entries(names).map(([key, name]) => (
        <PartRow
          key={key}
          name={name}
          part={reading?.body[key as keyof typeof names]}
          isDoubted={isDoubted}
        />
      ))}
    </dl>
    {reading === undefined ? undefined : (
      <p class="faint">
        Roles of this process: {reading.body.roles.join(", ")}. Log at{" "}
        <code>{reading.body.kafka.bootstrap}</code>.
      </p>
    )}
  </Card>
)
