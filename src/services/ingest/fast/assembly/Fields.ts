/** AssemblyScript. The fields of the item that is being read, as canonical texts. */
import { out } from "./Texts"

export const ID: usize = 0
export const TIMESTAMP: usize = 8
export const ACTOR_ID: usize = 16
export const ACTOR_TYPE: usize = 24
export const EMAIL: usize = 32
export const ACTION: usize = 40
export const RESOURCE_ID: usize = 48
export const RESOURCE_TYPE: usize = 56
export const NAME: usize = 64
export const OUTCOME: usize = 72
export const METADATA: usize = 80
const FIELDS_BYTES: usize = 88

/** Start and length of the text of each field; start 0 where it is absent. */
const FIELDS = memory.data(88, 16)

export function clearFields(): void {
  memory.fill(FIELDS, 0, FIELDS_BYTES)
}

export function has(field: usize): bool {
  return load<u32>(FIELDS + field) !== 0
}

export function startOf(field: usize): usize {
  return <usize>load<u32>(FIELDS + field)
}

/** Bytes of the text, quotes included. */
export function lengthOf(field: usize): usize {
  return <usize>load<u32>(FIELDS + field, 4)
}

/** What was written since `start` is the text of the field; false if it has one already. */
export function setField(field: usize, start: usize): bool {
  if (has(field)) return false
  store<u32>(FIELDS + field, <u32>start)
  store<u32>(FIELDS + field, <u32>(out - start), 4)
  return true
}
