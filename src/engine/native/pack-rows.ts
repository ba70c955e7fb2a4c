import { isInt32Array } from "node:util/types"
import { GigpoError } from "../../errors.ts"
import type { NativeRows } from "../../native.ts"
import type { Row } from "../engine.ts"

/** What a loss reads of each row, besides its tokens. */
export interface RowNeeds {
  readonly advantage?: boolean
  readonly logProbs?: boolean
  readonly referenceLogProbs?: boolean
}

/**
 * Rows as the native engine takes them: prompts and replies one after the other. Everything is checked here, so that native
 * code never meets a bad row.
 */
export function packRows(rows: readonly Row[], vocabularySize: number, needs: RowNeeds = {}): NativeRows {
  for (const [index, row] of rows.entries()) checkRow(row, index, vocabularySize, needs)
  return {
    tokens: joinInts(rows.flatMap((row) => [row.prompt, row.reply])),
    lengths: Int32Array.from(rows, (row) => row.prompt.length + row.reply.length),
    replyLengths: Int32Array.from(rows, (row) => row.reply.length),
    ...(needs.advantage && { advantages: Float32Array.from(rows, (row) => row.advantage!) }),
    ...(needs.logProbs && { logProbs: joinFloats(rows.map((row) => row.logProbs!)) }),
    ...(needs.referenceLogProbs && { referenceLogProbs: joinFloats(rows.map((row) => row.referenceLogProbs!)) }),
  }
}

function checkRow(row: Row, index: number, vocabularySize: number, needs: RowNeeds): void {
  const fail = (what: string) => new GigpoError("BAD_ARGUMENT", `rows[${index}]: ${what}.`)
  if (!isInt32Array(row.prompt) || !isInt32Array(row.reply)) throw fail("prompt and reply must be Int32Arrays")
  if (row.prompt.length === 0) throw fail("the prompt is empty; the first reply token needs something to follow")
  if (row.reply.length === 0) throw fail("the reply is empty; leave such rows out")
  for (const tokens of [row.prompt, row.reply]) {
    for (const token of tokens) {
      if (token < 0 || token >= vocabularySize)
        throw fail(`token ${token} is outside the model's vocabulary of ${vocabularySize}`)
    }
  }
  if (needs.advantage && !Number.isFinite(row.advantage)) {
    throw new GigpoError(
      "NON_FINITE",
      `rows[${index}].advantage is ${row.advantage}; a policy loss needs a finite number.`,
    )
  }
  for (const name of ["logProbs", "referenceLogProbs"] as const) {
    if (!needs[name]) continue
    const values = row[name]
    if (values?.length !== row.reply.length)
      throw fail(`${name} must hold one number for each of the ${row.reply.length} reply tokens`)
    if (!values.every(Number.isFinite))
      throw new GigpoError("NON_FINITE", `rows[${index}].${name} holds a number that is not finite.`)
  }
}

function joinInts(parts: readonly Int32Array[]): Int32Array {
  const joined = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

export function joinFloats(parts: readonly Float32Array[]): Float32Array {
  const joined = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

/** One array a row, each as long as the row's reply. */
export function splitByReply(flat: Float32Array, rows: readonly Row[]): Float32Array[] {
  let at = 0
  return rows.map((row) => {
    at += row.reply.length
    return flat.slice(at - row.reply.length, at)
  })
}
