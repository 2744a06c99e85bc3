/**
 * What is between the values of the sequencer's part of a stored record, see `appendSuffix` in
 * domain/events/HashChain: for who reads it by position.
 */
export const bytesOf = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "latin1"))

export const marks = {
  tenant: bytesOf(',"tenant_id":"'),
  created: bytesOf(',"created_at":"'),
  prevHash: bytesOf('","prev_hash":"'),
  salt: bytesOf('","details_salt":"'),
  detailsHash: bytesOf('","details_hash":"'),
  contentHash: bytesOf('","content_hash":"'),
  hash: bytesOf('","hash":"'),
  erased: bytesOf('","erased_at":"'),
  end: bytesOf('"}')
} as const

export const HASH_DIGITS = 64
export const SALT_DIGITS = 32
/** Of a time in canonical microsecond form. */
export const TIME_LENGTH = 27
/** A double holds every integer of so many digits. */
export const SEQUENCE_DIGITS_MAX = 15
