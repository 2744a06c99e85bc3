/** What waits to be sent, in the order in which it was logged, within limits of memory. */

/** One thing to send. It is text from the moment it is logged: what a caller changes later is late. */
export interface Item {
  /** Names it for the service and in reports. */
  readonly id: string
  /** JSON. */
  readonly text: string
  /** Of the text in UTF-8. */
  readonly bytes: number
  /** True if the caller chose the id: another event may have it. */
  readonly isNamedByCaller: boolean
}

/** An item in its place: serial numbers count from 1, in the order of logging. */
export interface Queued extends Item {
  readonly serial: number
  /** When it was logged, milliseconds since 1970. */
  readonly at: number
}

export interface BacklogLimits {
  /** Items that wait at most. */
  readonly itemsMax: number
  /** Bytes of their texts at most. */
  readonly bytesMax: number
}

/** Items that wait. */
export class Backlog {
  readonly #limits: BacklogLimits
  #items: Array<Queued> = []
  #bytes = 0
  #serial = 0

  constructor(limits: BacklogLimits) {
    this.#limits = limits
  }

  get length(): number {
    return this.#items.length
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The serial number of the last item that was logged; 0 before the first. */
  get lastSerial(): number {
    return this.#serial
  }

  get first(): Queued | undefined {
    return this.#items[0]
  }

  hasRoomFor({ bytes }: Item): boolean {
    const { bytesMax, itemsMax } = this.#limits
    return this.#items.length < itemsMax && this.#bytes + bytes <= bytesMax
  }

  add(item: Item, at: number): void {
    this.#serial += 1
    this.#items.push({ ...item, serial: this.#serial, at })
    this.#bytes += item.bytes
  }

  /** Those that are first, one at least, as long as they fit into a batch. They go on to count. */
  peek(itemsMax: number, bytesMax: number): ReadonlyArray<Queued> {
    let bytes = 0
    let count = 0
    for (const item of this.#items) {
      bytes += item.bytes
      if (count === itemsMax || (count > 0 && bytes > bytesMax)) break
      count += 1
    }
    return this.#items.slice(0, count)
  }

  /** Remove what is first: it was settled. */
  settle(count: number): void {
    for (const { bytes } of this.#items.slice(0, count)) this.#bytes -= bytes
    this.#items.splice(0, count)
  }
}
