/** Why a backup or a restore is not done: one line for the operator. */
import { Effect, Schema } from "effect"
import { BackupAhead } from "../../domain/backup/BackupPlan.ts"
import { RecordUnreadable } from "../../domain/json/RecordFields.ts"
import { BackupUnusable } from "./BackupFolder.ts"

export class BackupRefused extends Schema.TaggedError<BackupRefused>()("BackupRefused", {
  message: Schema.String
}) {}

export const refuse = (message: string): Effect.Effect<never, BackupRefused> =>
  Effect.fail(new BackupRefused({ message }))

const expected = [BackupAhead, BackupUnusable, RecordUnreadable]

/** What the folder's files and plans throw becomes a refusal; everything else stays a defect. */
export const refusing = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.catchDefect(effect, (defect) =>
    defect instanceof Error && expected.some((one) => defect instanceof one)
      ? refuse(defect.message)
      : Effect.die(defect)
  )
