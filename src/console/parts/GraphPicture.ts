/** What is drawn of a graph: its nodes and edges, of which those that are inferred can be left out. Pure. */
import type { AggregatedDag, Dag } from "../../client/gen/Api.d.ts"
import { counted } from "./Format.ts"

export interface LayoutQuestion {
  readonly nodes: ReadonlyArray<string>
  readonly edges: ReadonlyArray<{
    readonly id: string
    readonly source: string
    readonly target: string
  }>
  /** Of every node. */
  readonly width: number
  readonly height: number
}

export interface Point {
  readonly x: number
  readonly y: number
}

export interface LayoutAnswer {
  readonly width: number
  readonly height: number
  /** Middles of the nodes. */
  readonly nodes: ReadonlyArray<Point & { readonly id: string }>
  readonly edges: ReadonlyArray<{ readonly id: string; readonly points: ReadonlyArray<Point> }>
}

export interface DrawnNode {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly note: string
  readonly hasFailed: boolean
  readonly isCritical: boolean
}

export interface DrawnEdge {
  readonly id: string
  readonly source: string
  readonly target: string
  readonly kind: "parent" | "caused_by" | "inferred"
  /** The rule of an inferred edge, and how often an aggregated one was seen. */
  readonly title: string
}

export interface Picture {
  readonly nodes: ReadonlyArray<DrawnNode>
  readonly edges: ReadonlyArray<DrawnEdge>
}

/** Those of a node to itself are no way on. */
const leadingOn = (edges: ReadonlyArray<DrawnEdge>): ReadonlyArray<DrawnEdge> =>
  edges.filter(({ source, target }) => source !== target)

/** What went wrong, in one line. */
const messageOf = (error: Dag["nodes"][number]["error"]): string => {
  const said = typeof error === "object" ? (error["message"] ?? error["type"]) : error
  return typeof said === "string" ? said : ""
}

export const pictureOfDag = (dag: Dag, withInferred: boolean): Picture => {
  const critical = new Set(dag.critical_path.map(({ span_id }) => span_id))
  const inferred = withInferred ? (dag.inferred_edges ?? []) : []
  return {
    nodes: dag.nodes.map(({ error, id, missing, name, status, type }) => ({
      id,
      name,
      type,
      note: missing === true ? "never sent" : messageOf(error),
      hasFailed: status === "FAILED",
      isCritical: critical.has(id)
    })),
    edges: leadingOn([
      ...dag.edges.map(
        ({ id, source, target, type }): DrawnEdge => ({
          id,
          source,
          target,
          kind: type,
          title: type === "parent" ? "recorded: below" : "recorded: caused by"
        })
      ),
      ...inferred.map(
        ({ id, rule, source, target }): DrawnEdge => ({
          id,
          source,
          target,
          kind: "inferred",
          title: `inferred: ${rule}`
        })
      )
    ])
  }
}

export const pictureOfAggregated = (dag: AggregatedDag, withInferred: boolean): Picture => ({
  nodes: dag.nodes.map(({ count, errors, id, name, type }) => ({
    id,
    name,
    type,
    note: `${counted(count, "time")}${errors > 0 ? `, ${errors} failed` : ""}`,
    hasFailed: errors > 0,
    isCritical: false
  })),
  edges: leadingOn(
    dag.edges
      .filter(({ type }) => withInferred || type !== "inferred")
      .map(({ count, id, rule, source, target, type }) => ({
        id,
        source,
        target,
        kind: type,
        title: `${rule === undefined ? `recorded: ${type}` : `inferred: ${rule}`}, ${counted(count, "time")}`
      }))
  )
})
