/** Who may take away what a key has made: its own things, and with `write` those of every key. */
export const mayTakeAway = (
  keyId: string,
  scopes: ReadonlyArray<string>,
  createdBy: string
): boolean => keyId === createdBy || scopes.includes("write")
