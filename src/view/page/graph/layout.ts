export interface Point {
  readonly x: number
  readonly y: number
}

/** Boxes and links of a layout, in pixels. */
export interface LayoutRequest {
  readonly boxes: readonly { readonly width: number; readonly height: number }[]
  /** Links between boxes, by index, with the size of their labels. */
  readonly links: readonly {
    readonly from: number
    readonly to: number
    readonly width: number
    readonly height: number
    /** Number of times the link was taken. Frequent links run straight. */
    readonly weight: number
  }[]
  /** Whether ranks are from top to bottom. Otherwise they are from left to right. */
  readonly isTall: boolean
}

export interface Layout {
  readonly width: number
  readonly height: number
  /** Centres, [boxes]. */
  readonly boxes: readonly Point[]
  /** Routes, [links], from centre or border to centre or border; `label` is absent if the layout reserved no space for labels. */
  readonly links: readonly { readonly points: readonly Point[]; readonly label?: Point }[]
}
