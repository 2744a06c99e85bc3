/** Rows of which only those in view are in the document. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualItem,
  Virtualizer
} from "@tanstack/virtual-core"
import type { RefObject } from "preact"
import { useLayoutEffect, useReducer, useState } from "preact/hooks"

export interface Rows {
  /** Those in view, and some more. */
  readonly items: ReadonlyArray<VirtualItem>
  /** Pixels of all rows. */
  readonly height: number
  readonly scrollTo: (index: number) => void
}

/** Browsers end elements at some 33 million pixels. */
const HEIGHT_MAX = 30_000_000

/** How many rows of a height one list can hold. */
export const rowsMax = (rowHeight: number): number => Math.floor(HEIGHT_MAX / rowHeight)

/** `count` rows of one height inside of `scroller`. */
export const useRows = (
  count: number,
  rowHeight: number,
  scroller: RefObject<HTMLElement | null>
): Rows => {
  const [, render] = useReducer<number, undefined>((n) => n + 1, 0)
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => render(undefined)
  }
  const [rows] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(options))
  rows.setOptions(options)
  useLayoutEffect(() => rows._didMount(), [rows])
  useLayoutEffect(() => rows._willUpdate())
  return {
    items: rows.getVirtualItems(),
    height: rows.getTotalSize(),
    scrollTo: (index) => rows.scrollToIndex(index)
  }
}
