/**
 * The statements that give tools on a ClickHouse server or cluster the views of one tenant: those
 * that read-only SQL has, run as a user whom row policies show nothing else. Runs nothing itself.
 */
import { literal } from "../events/EventText.ts"
import { viewSelects, viewSettings } from "./SqlViews.ts"

export interface BiPlace {
  /** Where alk's tables are. */
  readonly database: string
  readonly cluster: string | undefined
  /** The user that alk itself reads as. */
  readonly user: string
}

const name = (text: string): string => `\`${text.replace(/[\\`]/g, "\\$&")}\``

const settings = Object.entries(viewSettings)
  .map(([setting, value]) => `${setting} = ${value}`)
  .join(", ")

/** The statements in their order, of a tenant's id in the form that tenants have. */
export const biStatements = (
  { cluster, database, user }: BiPlace,
  tenantId: string
): ReadonlyArray<string> => {
  const on = cluster === undefined ? "" : ` ON CLUSTER ${literal(cluster)}`
  const owner = name(`alk_views_${tenantId}`)
  const views = name(`bi_${tenantId}`)
  const tables = { events: `${database}.events`, facts: `${database}.facts` }
  const policies = Object.values(tables).flatMap((table) => [
    // Where a table has a policy, some servers show users without one nothing of it.
    `CREATE ROW POLICY IF NOT EXISTS alk${on} ON ${table} USING 1 TO ${name(user)}`,
    `CREATE ROW POLICY OR REPLACE ${owner}${on} ON ${table} USING tenant_id = ${literal(tenantId)}`
      + ` TO ${owner}`,
    `GRANT${on} SELECT ON ${table} TO ${owner}`
  ])
  return [
    `CREATE USER OR REPLACE ${owner}${on} HOST NONE SETTINGS ${settings}`,
    ...policies,
    `CREATE DATABASE IF NOT EXISTS ${views}${on}`,
    ...viewSelects(tables, tenantId, true).map(
      ([view, select]) =>
        `CREATE OR REPLACE VIEW ${views}.${view}${on} DEFINER = ${owner} SQL SECURITY DEFINER`
        + ` AS ${select}`
    )
  ]
}
