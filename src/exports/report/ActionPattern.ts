/**
 * Patterns of actions: dotted like the actions themselves. `*` matches any characters within a
 * segment, none included; `**` is a segment of its own and matches one or more segments. Case is
 * ignored. `firewall.**` is firewall.update and firewall.rule.update; `**.login*` is user.login and
 * user.login-failed.
 */

/** Characters of a pattern. */
export const PATTERN_LENGTH_MAX = 128
/** Wildcards of a pattern: the time that a match takes grows with its power. */
export const WILDCARDS_MAX = 3

const SEGMENT = "(?:\\*?[a-z0-9_-]+(?:\\*[a-z0-9_-]+)*\\*?|\\*{1,2})"

/** The form of a pattern; the number of its wildcards is limited apart. */
export const PATTERN_FORM = new RegExp(`^${SEGMENT}(?:\\.${SEGMENT})*$`)

const wildcards = (pattern: string): number => pattern.match(/\*+/g)?.length ?? 0

export const isActionPattern = (text: string): boolean =>
  text.length <= PATTERN_LENGTH_MAX && PATTERN_FORM.test(text) && wildcards(text) <= WILDCARDS_MAX

const SEGMENT_CHARACTER = "[a-z0-9_-]"

const segmentSource = (segment: string): string =>
  segment === "**"
    ? `${SEGMENT_CHARACTER}+(?:\\.${SEGMENT_CHARACTER}+)*`
    : segment.replaceAll("*", `${SEGMENT_CHARACTER}*`)

/** True for an action that one of the patterns means. */
export type ActionMatcher = (action: string) => boolean

/** The patterns have to be of the form that `isActionPattern` asks for. */
export const matcherOf = (patterns: ReadonlyArray<string>): ActionMatcher => {
  if (patterns.length === 0) return () => false
  const sources = patterns.map((pattern) => pattern.split(".").map(segmentSource).join("\\."))
  const form = new RegExp(`^(?:${sources.join("|")})$`, "i")
  return (action) => form.test(action)
}
