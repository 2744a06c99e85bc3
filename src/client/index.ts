/** What `alk/client` exports. */
export { ApiFailure } from "./ApiFailure.ts"
export { Client, type ClientOptions, createClient, type RecordOptions } from "./Client.ts"
export {
  type ActionShape,
  type Actions,
  catalogue,
  type EventOf,
  type MemberType
} from "./events/Catalogue.ts"
export type { EventInput, EventMetadata } from "./events/EventInput.ts"
export type { EventQuery, ExecutionQuery, ListOptions } from "./events/EventPages.ts"
export type { Recorded } from "./events/SendEvents.ts"
export type { TailOptions, TailQuery } from "./events/Tail.ts"
export type * from "./gen/Api.d.ts"
export type { QueryValue, Routes } from "./gen/Routes.d.ts"
export type { Counters, Overflow } from "./queue/Delivery.ts"
export type { FlushOptions, QueueCounters } from "./queue/Queues.ts"
export {
  NotAcknowledged,
  QueueFull,
  type Rejection,
  type Some,
  type Warning as ClientWarning
} from "./queue/Rejection.ts"
export type { Hooks } from "./queue/Reports.ts"
export type { AnswerOf, RequestArguments, RequestOptions, Route } from "./Request.ts"
export type { ConnectionOptions, QueueOptions } from "./Settings.ts"
export type { Key } from "./Transport.ts"
export type {
  EndOptions,
  Run as ActiveRun,
  RunOptions,
  Span as ActiveSpan,
  SpanOptions,
  ToolOptions
} from "./traces/Span.ts"
export {
  type ChainBreak,
  type ChainHead,
  ChainVerifier,
  type ChainVerifierOptions
} from "./verify/ChainVerifier.ts"
export { type Verification, verifyEvent } from "./verify/VerifyEvent.ts"
