import type { Segment } from "../engine/rows.ts"

/** Where a reply stands in what followed from it. */
export interface Course {
  /** Of every step of its conversation, those among them that are not learned; the same array in all of its replies. */
  readonly rewards: Float64Array
  /** Which of these steps it is, from 0. */
  readonly at: number
}

/** A reply of which is known what it earned. */
export interface CourseSpan extends Segment {
  readonly course?: Course | undefined
}
