/** Bytes that are kept for long. */

/**
 * A copy in memory of its own. A slice keeps everything that it was cut from; so does a small copy by
 * `Buffer.from` or `Buffer.concat`: it is cut from a piece of 64 KiB that whatever was made at that time
 * shares.
 */
export const detachedCopy = (bytes: Uint8Array): Buffer => {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}
