/**
 * What the log can contribute to which of the trust services criteria of SOC 2: a mapping of
 * patterns of actions, as a file that a setting can replace. A mapping says "evidence supporting",
 * never that anything is met: that is the auditor's to judge.
 */
import { Result, Schema } from "effect"
import { Outcome, outcomes } from "../../domain/events/AuditEvent.ts"
import { parseJson } from "../../domain/json/Json.ts"
import {
  isActionPattern,
  matcherOf,
  PATTERN_FORM,
  PATTERN_LENGTH_MAX,
  WILDCARDS_MAX
} from "./ActionPattern.ts"

const numbered = (group: string, last: number): ReadonlyArray<string> =>
  Array.from({ length: last }, (_, index) => `${group}.${index + 1}`)

/** Ids of the 2017 trust services criteria, revised points of focus of 2022. */
export const criterionIds: ReadonlyArray<string> = [
  ...numbered("CC1", 5),
  ...numbered("CC2", 3),
  ...numbered("CC3", 4),
  ...numbered("CC4", 2),
  ...numbered("CC5", 3),
  ...numbered("CC6", 8),
  ...numbered("CC7", 5),
  ...numbered("CC8", 1),
  ...numbered("CC9", 2),
  ...numbered("A1", 3),
  ...numbered("C1", 2),
  ...numbered("PI1", 5),
  ...numbered("P1", 1),
  ...numbered("P2", 1),
  ...numbered("P3", 2),
  ...numbered("P4", 3),
  ...numbered("P5", 2),
  ...numbered("P6", 7),
  ...numbered("P7", 1),
  ...numbered("P8", 1)
]

/** Characters of a sentence of the mapping. */
const SENTENCE_LENGTH_MAX = 400
/** Patterns of a list. */
const PATTERNS_MAX = 500
/** Rules of a criterion. */
const RULES_MAX = 20

const Sentence = (description: string) =>
  Schema.NonEmptyString.check(Schema.isMaxLength(SENTENCE_LENGTH_MAX)).annotate({ description })

const ActionPattern = Schema.String.check(
  Schema.makeFilter(isActionPattern, {
    expected:
      `a pattern of actions: lower-case segments joined by dots, at most ${WILDCARDS_MAX} `
      + "wildcards; * within a segment, ** as a segment of its own",
    toJsonSchema: () => ({
      maxLength: PATTERN_LENGTH_MAX,
      pattern: PATTERN_FORM.source
    })
  })
).annotate({
  description:
    "Pattern of actions, case ignored. * matches any characters within a segment, ** one "
    + `or more segments. At most ${WILDCARDS_MAX} wildcards.`,
  examples: ["firewall.**", "**.login*"]
})

const patterns = Schema.Array(ActionPattern).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(PATTERNS_MAX)
)

const Rule = Schema.Struct({
  actions: patterns,
  outcomes: Schema.optionalKey(
    Schema.Array(Outcome).check(Schema.isMinLength(1)).annotate({
      description: "Only events with one of these outcomes; without it, events with any."
    })
  )
}).annotate({
  identifier: "Rule",
  description: "An event counts if a pattern means its action and its outcome is listed."
})

/** One criterion and what this log holds for it. */
export const Criterion = Schema.Struct({
  id: Schema.String.check(
    Schema.makeFilter((id: string) => criterionIds.includes(id), {
      expected: "the id of a trust services criterion, such as CC6.1",
      toJsonSchema: () => ({ enum: [...criterionIds] })
    })
  ).annotate({ description: "Id of the criterion." }),
  topic: Sentence("What the criterion is about, in words of one's own."),
  evidence: Sentence("Which evidence the log holds for it."),
  elsewhere: Sentence("What has to come from elsewhere."),
  rules: Schema.Array(Rule).check(Schema.isMaxLength(RULES_MAX)).annotate({
    description: "An event counts once if any of the rules does. Empty: no event counts."
  })
}).annotate({ identifier: "Criterion" })
export type Criterion = typeof Criterion.Type

/** What `ALK_CRITERIA_FILE` holds. */
export const CriteriaMapping = Schema.Struct({
  $schema: Schema.optionalKey(Schema.String),
  criteria: Schema.Array(Criterion).check(
    Schema.isMinLength(1),
    Schema.makeFilter(
      (criteria: ReadonlyArray<Criterion>) =>
        new Set(criteria.map(({ id }) => id)).size === criteria.length,
      { expected: "each criterion once" }
    )
  ),
  privileged_actions: patterns.annotate({
    description: "Actions that the report lists as privileged, by actor."
  })
}).annotate({
  identifier: "CriteriaMapping",
  title: "Mapping of actions to trust services criteria",
  description: "Which actions of the log the report counts for which criterion."
})
export type CriteriaMapping = typeof CriteriaMapping.Type

const decode = Schema.decodeUnknownResult(CriteriaMapping, {
  errors: "all",
  onExcessProperty: "error"
})

/** The mapping of a file's text, or what is wrong with it, with the field named. */
export const parseMapping = (text: string): Result.Result<CriteriaMapping, string> => {
  let value: unknown
  try {
    value = parseJson(text)
  } catch (cause) {
    return Result.fail(`is no JSON: ${(cause as Error).message}`)
  }
  return Result.mapError(decode(value), ({ message }) => `is no criteria mapping: ${message}`)
}

/** The outcomes with which events of an action count; none for an action that does not. */
export type OutcomesCounted = (action: string) => ReadonlyArray<Outcome>

/** An event counts once, however many rules mean it. */
export const countedBy = ({ rules }: Criterion): OutcomesCounted => {
  const matchers = rules.map((rule) => ({
    isMeant: matcherOf(rule.actions),
    outcomes: rule.outcomes ?? outcomes
  }))
  return (action) => {
    const meant = matchers.filter(({ isMeant }) => isMeant(action))
    return outcomes.filter((outcome) => meant.some((rule) => rule.outcomes.includes(outcome)))
  }
}
