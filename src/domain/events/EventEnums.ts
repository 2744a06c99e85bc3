/** What the members of an event that are no free texts may be. */

export const actorTypes = ["human", "agent", "system"] as const

export const outcomes = ["success", "failure", "error"] as const
