/** AssemblyScript. The texts between the values of a stored event, compared 16 bytes at a time. */

/** No place: what was read is not of the form that the columns give back. */
export const NOT: usize = 0

const MARKS_COUNT: usize = 24
/** Bytes of a mark: 32 of its text, 32 that select them, its length. */
const MARK_BYTES: usize = 80
const SELECTION: usize = 32
const LENGTH: usize = 64
const MARKS = memory.data(24 * 80, 16)
let marks: usize = 0

/** An ASCII text of 32 bytes at most, kept for `after`. */
export function mark(text: string): usize {
  if (marks === MARKS_COUNT || text.length > <i32>SELECTION) unreachable()
  const place = MARKS + marks++ * MARK_BYTES
  for (let index = 0; index < text.length; index++) {
    store<u8>(place + index, <u8>text.charCodeAt(index))
    store<u8>(place + index, 0xff, SELECTION)
  }
  store<u32>(place, text.length, LENGTH)
  return place
}

/** Where reading goes on after the mark; NOT if another text is at `at`, or if that is NOT. */
export function after(at: usize, mark: usize): usize {
  if (at === NOT) return NOT
  const first = v128.xor(v128.load(at), v128.load(mark))
  const rest = v128.xor(v128.load(at, 16), v128.load(mark, 16))
  const differences = v128.or(
    v128.and(first, v128.load(mark, SELECTION)),
    v128.and(rest, v128.load(mark, SELECTION + 16))
  )
  return v128.any_true(differences) ? NOT : at + load<u32>(mark, LENGTH)
}
