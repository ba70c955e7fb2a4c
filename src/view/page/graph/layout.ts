export interface Point {
  readonly x: number
  readonly y: number
}

/** Boxes and links of a layout, in pixels. */
export interface LayoutRequest {
  readonly boxes: readonly { readonly width: number; readonly height: number }[]
  /** With the size of the label. */
  readonly links: readonly {
    readonly from: number
    readonly to: number
    readonly width: number
    readonly height: number
    /** Number of times the link was taken. Frequent links run straight. */
    readonly weight: number
  }[]
  /** Ranks from top to bottom, not from left to right. */
  readonly isTall: boolean
}

export interface Layout {
  readonly width: number
  readonly height: number
  /** Centres, [boxes]. */
  readonly boxes: readonly Point[]
  /** [links] From border to border; where a label stands, the layout knows if it left room for it. */
  readonly links: readonly { readonly points: readonly Point[]; readonly label?: Point }[]
}
