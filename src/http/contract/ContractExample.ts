/**
 * One stored event as the OpenAPI document shows it: the first of its chain, all hashes true. A test
 * recomputes them.
 */
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"

/** An example for answers that hold events. */
export const exampleEvent: AuditEvent = {
  id: "evt-1",
  timestamp: "2026-11-21T10:00:01.000001Z",
  actor: { id: "user_1", type: "human", email: "ada@example.com" },
  action: "document.read",
  resource: { id: "doc_1", type: "document", name: "Annual report" },
  outcome: "success",
  metadata: { ip: "192.0.2.1", pages: 3 },
  tenant_id: "acme",
  sequence_number: 1,
  created_at: "2026-11-21T10:00:01.204711Z",
  prev_hash: "0000000000000000000000000000000000000000000000000000000000000000",
  details_salt: "000102030405060708090a0b0c0d0e0f",
  details_hash: "557df372fa0e833046be90fb082331b007f71f86dd055fdb52494c771331e740",
  content_hash: "720738b01724f1cee4e5e8712d2ea5a98c0b0322bf507bb60470bf455521fadd",
  hash: "a19e04463d7283d996fbb267a54e66443e07b050f5b633a4dad754cbbf58b16c"
}
