/** One record of `alk.state`; a null value is a tombstone. */
export interface StateRecord {
  readonly key: string
  readonly value: string | Buffer | null
}
