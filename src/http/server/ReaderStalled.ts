/** Why a connection was cut: its client takes nothing, or too little, of what waits for it. */
export class ReaderStalled extends Error {
  override readonly name = "ReaderStalled"
}
