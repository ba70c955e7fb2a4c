// Names that options, their values, metrics and options of commands had in earlier versions. An old name is refused with the new one.
//
// - `options`: old name -> new name, in the same group. The old name "guards.mostAge" applies only in groups called guards, and has
//   precedence over plain "mostAge". A new name with dots, "optimizer.rate", is an option that moved into a group next to the old one.
// - `values`: the option, "=" and the old value -> new value: "unit=span" -> "segment". The name of a choice is the option "name".
// - `metrics`: old name -> new name: "reply/cut" -> "completion/truncated".
// - `flags`: command, and old option of the command line -> new option.
//
// An entry applies only where the old name is unknown and the new one is known, so a name can stay valid in other groups. test/options/renamed.test.ts
// tries each entry.
export const renamed: {
  readonly options: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, string>>
  readonly metrics: Readonly<Record<string, string>>
  readonly flags: Readonly<Record<string, Readonly<Record<string, string>>>>
} = {
  options: {
    leastGroupSize: "minGroupSize",
    leastEntropy: "minEntropy",
    leastValid: "minValid",
    mostRepetition: "maxRepetition",
    mostConstant: "maxConstant",
    mostAge: "maxAge",
    leastTurns: "minTurns",
    leastSteps: "minSteps",
    leastDeviation: "minStd",
    leastAdvantage: "minAdvantage",
    headStart: "warmupIterations",
    batchRows: "stepsPerUpdate",
    "sft.batchRows": "completionsPerUpdate",
    "sft.batchSteps": "completionsPerUpdate",
    "sft.stepsPerUpdate": "completionsPerUpdate",
    batchSteps: "stepsPerUpdate",
    batchEpisodes: "episodesPerUpdate",
    "training.updates": "updatesPerEpoch",
    klIn: "klPlacement",
    librarySampling: "sampleWithCublas",
    cacheBytes: "kvCacheBytes",
    longestRow: "maxTrainTokens",
    moments: "optimizerPrecision",
    maxReplyTokens: "maxCompletionTokens",
    likeliestWeight: "topWeight",
    refills: "maxRefillRounds",
    retries: "maxRetries",
    resamples: "maxResamples",
    forks: "maxBranches",
    maxForks: "maxBranches",
    failureShare: "maxFailed",
    nonFinite: "maxNonFinite",
    "initialModel.deviation": "initStd",
    "training.turns": "rolloutHooks",
    turnHooks: "rolloutHooks",
    pipeline: "maxStaleness",
    importance: "rolloutCorrection",
    ratio: "importanceSamplingLevel",
    "environment.around": "wrapper",
    clone: "sft",
    initialize: "initialModel",
    episodes: "recording",
    reply: "completionFormat",
    replies: "completions",
    successes: "successfulOnly",
    shownRows: "maxRows",
    "implicitQ.most": "maxWeight",
    "privileged.sees": "context",
    "curriculum.most": "maxSteps",
    "curriculum.pool": "poolSize",
    "curriculum.rate": "learningRate",
    "curriculum.floor": "minWeight",
    "wrapper.ask": "instruction",
    "wrapper.shown": "heading",
    "wrapper.ends": "episodeEnd",
    "memory.show": "topk",
    "memory.longest": "maxCharacters",
    "memory.length": "history",
    "memory.size": "chunkSize",
    "memory.about": "domain",
    "rolloutHooks.into": "branchingFactor",
    "rolloutHooks.opens": "openTag",
    "rolloutHooks.opened": "promptOpensThinking",
    "rolloutHooks.closes": "closeTag",
    "rolloutHooks.flat": "flatTokens",
    "rolloutHooks.change": "flatThreshold",
    "rolloutHooks.thought": "maxThinkingTokens",
    "rolloutHooks.near": "resampleThreshold",
    "rolloutHooks.tries": "maxResamples",
    "rolloutHooks.brief": "briefPrompt",
    "rolloutHooks.think": "thinkPrompt",
    "rolloutHooks.invalid": "invalidScore",
    "rolloutHooks.longest": "maxCharacters",
    "rolloutHooks.lead": "answerPrefix",
    "estimator.of": "estimator",
    "estimator.compare": "groupBy",
    "estimator.deviation": "std",
    "estimator.alone": "singletonTurn",
    "engine.patience": "requestTimeout",
    "engine.contact": "connectTimeout",
    "engine.deadline": "resultTimeout",
    "engine.wire": "encoding",
  },
  values: {
    "normalization=std": "sample",
    "unit=span": "segment",
    "unit=row": "sequence",
    "penaltyPlacement=row": "step",
    "tooLong=leave-out": "drop",
    "tooLong=cut": "truncate",
    "rolloutHooks.name=fork-at": "branch-at",
  },
  metrics: {
    "reply/cut": "completion/truncated",
    "reply/tokens": "completion/tokens",
    "reply/valid": "action/valid",
    "rows/unmerged": "sequence/unmerged",
    "clone/epoch": "sft/epoch",
    "clone/loss": "sft/loss",
    "clone/rows": "sft/completions",
    "sft/rows": "sft/completions",
    "replay/remembered": "replay/size",
    "replay/rows": "replay/sequences",
    "evaluation/cut": "evaluation/truncated",
    "policy/largest-weight": "policy/max-weight",
  },
  flags: {
    episodes: { "--failed": "--unsuccessful" },
  },
}

/**
 * Returns the new path of an unknown option. undefined if the option was not renamed.
 *
 * @param known - names of the options of its group
 */
export function newName(path: readonly string[], known: readonly string[]): readonly string[] | undefined {
  const above = path.slice(0, -1)
  const to = lookup(renamed.options, path)?.split(".")
  return to && known.includes(to[0]!) ? [...above, ...to] : undefined
}

/**
 * Returns the new name of a value that an option refuses. undefined if the value was not renamed.
 *
 * @param known - whether the option accepts a value
 */
export function newValue(
  path: readonly string[],
  value: unknown,
  known: (value: string) => boolean,
): string | undefined {
  if (typeof value !== "string") return undefined
  const to = lookup(renamed.values, [...path.slice(0, -1), `${path.at(-1)}=${value}`])
  return to !== undefined && known(to) ? to : undefined
}

/** Entry under the path with the group, or else under the name alone. */
function lookup(table: Readonly<Record<string, string>>, path: readonly string[]): string | undefined {
  const keys = [path.slice(-2).join("."), path.at(-1) ?? ""]
  return keys.filter((key) => Object.hasOwn(table, key)).map((key) => table[key])[0]
}
