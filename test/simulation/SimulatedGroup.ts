/**
 * A consumer group that shares out partitions: members join, leave, crash, and lose the group
 * without noticing, so that for a while two of them believe to own a partition.
 */
import { Effect, Queue, Stream } from "effect"
import type { Assignment } from "../../src/ports/EventLog.ts"
import type { Faults, Life } from "./Faults.ts"

/** Milliseconds without a heartbeat until a member is out. */
const SESSION_MS = 6_000
/** Milliseconds that a member asks before it writes ends before its session does. */
const LEASE_AHEAD_MS = 2_000
const REJOIN_MS = 500

class Member {
  readonly life: Life
  readonly queue: Queue.Queue<Assignment>
  generation = 0
  /** Its lease is over: the group may have given its partitions away. */
  isLost = false
  /** When the last assignment that was sent arrives. */
  arrives = 0

  constructor(life: Life, queue: Queue.Queue<Assignment>) {
    this.life = life
    this.queue = queue
  }

  assign(partitions: ReadonlyArray<number>): void {
    if (this.life.isDead) return
    this.generation += 1
    const own = this.generation
    Queue.offerUnsafe(this.queue, {
      generation: own,
      partitions,
      isCurrent: () => this.generation === own && !this.isLost
    })
  }
}

export class SimulatedGroup {
  readonly #faults: Faults
  readonly #name: string
  readonly #partitions: number
  #members: Array<Member> = []
  /** Numbers the plans: an older one that arrives late is not for a member that is out. */
  #plan = 0

  constructor(faults: Faults, name: string, partitions: number) {
    this.#faults = faults
    this.#name = name
    this.#partitions = partitions
  }

  membership(life: Life): Stream.Stream<Assignment> {
    return Stream.callback<Assignment>(
      Effect.fnUntraced({ self: this }, function* (queue) {
        const member = new Member(life, queue as unknown as Queue.Queue<Assignment>)
        this.#faults.time.after(this.#faults.latency(500), () => this.#join(member))
        yield* Effect.addFinalizer(() => Effect.sync(() => this.#left(member)))
        return yield* Effect.never
      }),
      { bufferSize: 64, strategy: "sliding" }
    )
  }

  /** Members of a process that has crashed are out when their sessions end. */
  crashed(life: Life): void {
    this.#faults.time.after(this.#faults.chance.between(100, SESSION_MS), () => {
      this.#remove((member) => member.life === life)
    })
  }

  /** One member loses the group, and notices only later. */
  evictOne(): void {
    const member = this.#faults.chance.pick(this.#members)
    if (member === undefined || member.isLost) return
    const { chance, log, time } = this.#faults
    log(`${this.#name}: ${member.life.name} loses the group`)
    member.isLost = true
    const noticed = chance.between(LEASE_AHEAD_MS, LEASE_AHEAD_MS + 4_000)
    time.after(LEASE_AHEAD_MS, () => this.#remove((one) => one === member))
    time.after(noticed, () => {
      member.assign([])
      time.after(REJOIN_MS, () => {
        member.isLost = false
        this.#join(member)
      })
    })
  }

  /** Shares the partitions out anew. */
  rebalance(): void {
    const { chance, log, time } = this.#faults
    const members = this.#members
    const plan = ++this.#plan
    if (members.length === 0) return
    const first = chance.between(0, members.length - 1)
    for (const [index, member] of members.entries()) {
      const own = Array.from({ length: this.#partitions }, (_, partition) => partition).filter(
        (partition) => (partition + first) % members.length === index
      )
      const at = Math.max(member.arrives, time.now + chance.between(1, 20))
      member.arrives = at
      time.after(at - time.now, () => {
        if (!this.#members.includes(member) || member.isLost) return
        log(`${this.#name}: ${member.life.name} gets [${own}] of plan ${plan}`)
        member.assign(own)
      })
    }
  }

  #join(member: Member): void {
    if (member.life.isDead || this.#members.includes(member)) return
    this.#members = [...this.#members, member]
    this.rebalance()
  }

  #left(member: Member): void {
    // Of a process that has crashed nobody says so.
    if (member.life.isDead) return
    member.isLost = true
    this.#remove((one) => one === member)
  }

  #remove(isGone: (member: Member) => boolean): void {
    const left = this.#members.filter((member) => !isGone(member))
    if (left.length === this.#members.length) return
    this.#members = left
    this.rebalance()
  }
}
