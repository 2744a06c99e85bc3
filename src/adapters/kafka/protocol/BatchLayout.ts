/**
 * A record batch of format 2 (magic 2): offsets within its head, in bytes, and its attributes.
 * Source: Kafka's protocol guide, record batch format.
 */
import type { Compression } from "../../../domain/records/Topics.ts"

export const LENGTH_AT = 8
export const LEADER_EPOCH_AT = 12
export const MAGIC_AT = 16
export const CHECKSUM_AT = 17
export const ATTRIBUTES_AT = 21
export const LAST_OFFSET_AT = 23
export const FIRST_TIMESTAMP_AT = 27
export const LAST_TIMESTAMP_AT = 35
export const PRODUCER_ID_AT = 43
export const PRODUCER_EPOCH_AT = 51
export const SEQUENCE_AT = 53
export const COUNT_AT = 57
export const RECORDS_AT = 61

/** Bytes before those that the length of a batch counts. */
export const BATCH_HEAD_BYTES = LEADER_EPOCH_AT

/** The codecs as the attributes of a batch number them. */
export const CODECS: Readonly<Record<Compression, number>> = { none: 0, gzip: 1, zstd: 4 }
export const CODEC_MASK = 0x07
/** Set where the times are the broker's (`message.timestamp.type=LogAppendTime`). */
export const TIMESTAMP_TYPE_MASK = 0x08
export const TRANSACTIONAL_MASK = 0x10
export const CONTROL_MASK = 0x20
