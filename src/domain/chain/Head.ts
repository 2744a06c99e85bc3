/** The end of one tenant's chain. */
export interface Head {
  readonly sequence_number: number
  readonly hash: string
  /** Canonical microsecond form. */
  readonly created_at: string
}
