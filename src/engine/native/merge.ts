import type { NativeLossReport, NativeScores, NativeValueReport } from "../../native/native.ts"

// Results of replicas as those of one engine. Each replica reports the tokens of its share; log-probabilities of others are NaN.

/** Sum of arrays of the same length, in order. */
export function summed([first, ...others]: readonly Float32Array[]): Float32Array {
  const sum = first!.slice()
  for (const other of others) for (let i = 0; i < sum.length; i++) sum[i]! += other[i]!
  return sum
}

export function mergedScores(all: readonly NativeScores[]): NativeScores {
  const [first, ...others] = all
  for (const other of others) {
    const take = first!.logProbs.map((logProb, i) =>
      Number.isNaN(logProb) && !Number.isNaN(other.logProbs[i]) ? 1 : 0,
    )
    for (const name of ["logProbs", "entropies", "hellingers", "topTokens", "topLogProbs"] as const)
      takeOver(first![name], other[name], take)
  }
  return first!
}

export function mergedLosses(all: readonly NativeLossReport[]): NativeLossReport {
  const total = (of: (report: NativeLossReport) => number) => all.reduce((sum, report) => sum + of(report), 0)
  const tokens = total((report) => report.tokens)
  const mean = (of: (report: NativeLossReport) => number) =>
    total((report) => of(report) * report.tokens) / Math.max(tokens, 1)
  return {
    loss: total((report) => report.loss),
    tokens,
    computedTokens: total((report) => report.computedTokens),
    reusedTokens: total((report) => report.reusedTokens),
    entropy: mean((report) => report.entropy),
    clipFraction: mean((report) => report.clipFraction),
    dualClipFraction: mean((report) => report.dualClipFraction),
    kl: mean((report) => report.kl),
    policyKl: mean((report) => report.policyKl),
    ratio: mean((report) => report.ratio),
    logProbs: mergedValues(all.map((report) => report.logProbs)),
  }
}

/** Sums: the critic weights each token by the number of all. */
export function mergedValueLosses(all: readonly NativeValueReport[]): NativeValueReport {
  const total = (of: (report: NativeValueReport) => number) => all.reduce((sum, report) => sum + of(report), 0)
  return {
    loss: total((report) => report.loss),
    tokens: all[0]!.tokens,
    clipFraction: total((report) => report.clipFraction),
    value: total((report) => report.value),
  }
}

export function mergedValues([first, ...others]: readonly Float32Array[]): Float32Array {
  for (const other of others) for (let i = 0; i < first!.length; i++) if (Number.isNaN(first![i])) first![i] = other[i]!
  return first!
}

/** Takes over the values of the chosen tokens, each of which has the same number of values. */
function takeOver<T extends Float32Array | Int32Array>(to: T, from: T, chosen: Float32Array): void {
  const width = to.length / chosen.length
  for (let token = 0; token < chosen.length; token++) {
    if (chosen[token] === 0) continue
    for (let i = token * width; i < (token + 1) * width; i++) to[i] = from[i]!
  }
}
