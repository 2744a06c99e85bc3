/** Requests for reports over a synthetic population. */
import { emptyFilter } from "../../../../src/domain/events/EventFilter.ts"
import type { ReportInput } from "../../../../src/exports/report/Report.ts"
import { HISTORY_FROM, HISTORY_TO, type VerifyReport } from "../../../../src/verify/Verifier.ts"
import type { EventAt } from "./SyntheticStore.ts"

export const verificationOf = (
  size: number,
  eventAt: EventAt,
  changed: Partial<VerifyReport> = {}
): VerifyReport => {
  const head = size === 0 ? undefined : eventAt(size)
  return {
    valid: true,
    status: size === 0 ? "empty" : "valid",
    tenant_id: "acme",
    scheme: "alk-chain-v1",
    bounds: { from: HISTORY_FROM, to: HISTORY_TO, from_sequence: null, to_sequence: null },
    events_checked: size,
    events_in_bounds: size,
    first_sequence_number: size === 0 ? null : 1,
    last_sequence_number: size === 0 ? null : size,
    head:
      head === undefined
        ? null
        : { sequence_number: size, hash: head.hash, created_at: head.created_at },
    erased_events: 0,
    assurance: "self_attested",
    breaks: [],
    breaks_total: 0,
    verified_at: "2026-11-21T10:00:00.000000Z",
    duration_ms: 12,
    ...changed
  }
}

export const inputOf = (
  verification: VerifyReport,
  changed: Partial<ReportInput> = {}
): ReportInput => ({
  tenant: { id: "acme", name: "Acme Industries" },
  filter: emptyFilter,
  verification,
  generatedAt: "2026-11-21T10:00:01.000000Z",
  serviceName: "alk",
  request: {
    askedBy: { kind: "API key", id: "key_auditor" },
    line: "GET /v1/export/pdf",
    serviceUrl: "https://audit.example.com",
    apiVersion: "1.0.0"
  },
  traces: undefined,
  deduplicate: false,
  ...changed
})
