/** How long texts are in UTF-8, counted only where that is not clear from their length. */

/** UTF-8 takes three bytes at most for a UTF-16 unit: short texts need no counting. */
const UNIT_BYTES_MAX = 3

export const isLonger = (text: string, bytesMax: number): boolean =>
  text.length > bytesMax
  || (text.length * UNIT_BYTES_MAX > bytesMax && Buffer.byteLength(text) > bytesMax)
