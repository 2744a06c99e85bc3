/**
 * The public keys that checkpoints of this service were ever signed with, as `alk.registry` tells
 * them: what a signature is checked against, and what auditors are given. None is ever taken away.
 */
import { Context, type Effect } from "effect"
import type { LogUnavailable } from "../ports/EventLog.ts"

export interface PublishedKey {
  /** 8 hex digits. */
  readonly keyId: string
  /** The key as C2SP writes it, its name included. */
  readonly vkey: string
  /** Base64 of the 32 bytes. */
  readonly publicKey: string
  /** Canonical microsecond form. */
  readonly addedAt: string
}

export class PublishedKeys extends Context.Service<
  PublishedKeys,
  {
    /** In the order in which they were added. */
    readonly all: Effect.Effect<ReadonlyArray<PublishedKey>>
    /** Succeeds when every key that was published before the call is known here. */
    readonly caughtUp: Effect.Effect<void, LogUnavailable>
  }
>()("alk/PublishedKeys") {}
