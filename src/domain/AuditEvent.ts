/** Interim. */
export interface AuditEvent {
  readonly id: string
  readonly timestamp: string
  readonly actor: { readonly id: string; readonly type: "human" | "agent" | "system"; readonly email?: string }
  readonly action: string
  readonly resource: { readonly id: string; readonly type: string; readonly name?: string }
  readonly outcome: "success" | "failure" | "error"
  readonly metadata?: Record<string, unknown>
  readonly tenant_id: string
  readonly sequence_number: number
  readonly created_at: string
  readonly prev_hash: string
  readonly details_salt?: string
  readonly details_hash?: string
  readonly content_hash: string
  readonly hash: string
  readonly erased_at?: string
}
