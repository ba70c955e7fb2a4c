/** Where a recording and our environment differ. */
export interface Difference {
  /** What was being done, e.g. `step 3: look`. */
  readonly where: string
  readonly expected: string
  readonly actual: string
}

/**
 * Plays a recording of an environment's original engine again, in ours. One yield for every recorded step: its differences,
 * `[]` where all is equal.
 *
 * @param data folder of the original's data (games, catalogue); not every recording needs one
 * @param records the recording's JSON lines
 */
export type Replay = (data: string, records: AsyncIterable<unknown>) => AsyncGenerator<readonly Difference[], void>
