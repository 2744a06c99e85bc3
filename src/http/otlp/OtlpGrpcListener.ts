/**
 * Where this process takes OTLP over gRPC. Apart from the server for it, which is loaded only where it
 * is wanted.
 */
import { Context } from "effect"

export class OtlpGrpcListener extends Context.Service<
  OtlpGrpcListener,
  {
    /** An address of this machine that reaches it, without a trailing slash; undefined if it is off. */
    readonly url: string | undefined
  }
>()("alk/http/OtlpGrpcListener") {}
