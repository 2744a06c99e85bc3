/**
 * How many links between spans are followed in search of cycles: by one search, and by all searches
 * of a tenant. What a tenant has used comes back with time, whatever its requests look like.
 */

/** Links of one search: as many as a chain of all spans of an execution has. */
export const SEARCH_LINKS_MAX = 100_000
/** Links of a tenant at once, about 40 ms of one partition. Honest traces need a few per span. */
export const TENANT_LINKS_MAX = 250_000
const MICROS_TO_REFILL = 1_000_000
/** From this weight on an execution takes no further span, and no other content is remembered. */
export const EXECUTION_WEIGHT_MAX = 150_000
/** Links that a local root counts as, when the roots of an execution are counted anew. */
const LINKS_PER_ROOT = 8

/** Links that may still be followed; one search after the other uses it up. */
export interface LinkBudget {
  /** Below zero once a search has ended for it. */
  left: number
}

/** Local roots that may be counted. */
export const rootsWithin = ({ left }: LinkBudget): number => left / LINKS_PER_ROOT

/** Counting roots uses what is left, and makes no debt. */
export const takeForRoots = (budget: LinkBudget, roots: number): void => {
  budget.left = Math.max(0, budget.left - LINKS_PER_ROOT * roots)
}

/** What the searches of a chunk have used. */
export interface LinkChanges {
  /** By tenant, for each that the chunk has named. */
  readonly links: ReadonlyMap<string, LinkBudget>
  /** Of the chunk. */
  readonly nowMicros: number
}

/** What the tenants of a partition have left. */
export class LinkBudgets {
  /** By tenant, those that have used some. */
  readonly #used = new Map<string, { readonly links: number; readonly at: number }>()

  left(tenantId: string, nowMicros: number): number {
    const used = this.#used.get(tenantId)
    if (used === undefined) return TENANT_LINKS_MAX
    const passed = Math.max(0, nowMicros - used.at) / MICROS_TO_REFILL
    return Math.min(TENANT_LINKS_MAX, Math.floor(TENANT_LINKS_MAX * (1 + passed) - used.links))
  }

  /** Take over what a chunk has left of it. */
  advance({ links: budgets, nowMicros }: LinkChanges): void {
    for (const [tenantId, { left }] of budgets) {
      const links = TENANT_LINKS_MAX - Math.max(0, left)
      if (links === 0) this.#used.delete(tenantId)
      else this.#used.set(tenantId, { links, at: nowMicros })
    }
  }
}
