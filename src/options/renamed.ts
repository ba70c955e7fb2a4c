// Names that options, their values, metrics, commands, keys of files, exports and errors had in earlier versions. An old name is rejected with the new
// one. Exports and error codes are listed only: Node.js itself rejects the import.
//
// - `options`: old name -> new name, in the same group. The old name "guards.mostAge" applies only in groups called guards, and has
//   precedence over plain "mostAge". A new name with dots, "optimizer.rate", is an option that moved into a group next to the old one.
// - `values`: the option, "=" and the old value -> new value: "unit=span" -> "completion". The name of a choice is the option "name".
// - `metrics`: old name -> new name: "reply/cut" -> "completion/truncated".
// - `commands`: old command -> new command; of a subcommand with the command: "benchmark pin".
// - `flags`: command, or gigpo itself, and old option of the command line -> new option.
// - `keys`: old key of a benchmark file or of the header of an evaluation file -> new key: "digests.world" -> "digests.environment".
// - `exports`: old name -> new name, of a value or a type.
// - `errors`: old error code -> new error code.
//
// An entry applies only where the old name is unknown and the new one is known, so a name can stay valid in other groups. test/options/renamed.test.ts
// tries each entry.
export const renamed: {
  readonly options: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, string>>
  readonly metrics: Readonly<Record<string, string>>
  readonly commands: Readonly<Record<string, string>>
  readonly flags: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly keys: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string>>
  readonly errors: Readonly<Record<string, string>>
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
    whiten: "stdScope",
    teacherWeights: "teacherTokenWeights",
    "engine.patience": "requestTimeout",
    "engine.contact": "connectTimeout",
    "engine.deadline": "resultTimeout",
    "engine.wire": "encoding",
  },
  values: {
    "normalization=std": "sample",
    "unit=span": "completion",
    "unit=segment": "completion",
    "privileged.context=outcome": "feedback",
    "unit=row": "conversation",
    "unit=sequence": "conversation",
    "penaltyPlacement=row": "step",
    "tooLong=leave-out": "drop",
    "tooLong=cut": "truncate",
    "rolloutHooks.name=fork-at": "branch-at",
    "loss.name=holder": "holder-po",
  },
  metrics: {
    "reply/cut": "completion/truncated",
    "reply/tokens": "completion/tokens",
    "reply/valid": "action/valid",
    "rows/unmerged": "sequence/retokenized",
    "clone/epoch": "sft/epoch",
    "clone/loss": "sft/loss",
    "clone/rows": "sft/completions",
    "sft/rows": "sft/completions",
    "replay/remembered": "replay/size",
    "replay/rows": "replay/sequences",
    "policy/largest-weight": "policy/max-weight",
    "episode/refused": "episode/rejected-calls",
    "evaluation/refused": "evaluation/rejected-calls",
    "sequence/unmerged": "sequence/retokenized",
    "sequence/new-prefix": "sequence/retokenized",
    "episode/rejected": "episode/rejected-calls",
    "evaluation/rejected": "evaluation/rejected-calls",
    "episode/dropped": "episode/excluded",
    "episode/late": "episode/near-limit",
    "episode/wasted": "episode/loop-steps",
    "step-group/compared": "step-group/nonzero",
    "step-group/compared-across": "step-group/nonzero-across",
    "policy/dropped-fraction": "policy/cov-clipped-fraction",
    "replay/dropped-fraction": "replay/cov-clipped-fraction",
    "policy/truncated-fraction": "policy/ratio-truncated-fraction",
    "policy/taper": "policy/gradient-weight",
    "policy/imitation-weight": "policy/expert-weight",
    "policy/imitation-loss": "loss/cross-entropy",
    "teacher/gap": "teacher/log-ratio",
    "teacher/distance": "teacher/log-ratio",
    "teacher/weight": "teacher/token-weight",
    "guard/entropy": "policy/entropy",
    "guard/valid": "action/valid",
    "guard/unsolved": "guard/episodes-since-success",
  },
  commands: {
    panel: "benchmark",
    "benchmark pin": "benchmark create",
  },
  flags: {
    gigpo: { "--silence": "--heartbeat" },
    export: { "--type": "--dtype" },
    report: { "--max-megabytes": "--max-size" },
    episodes: { "--failed": "--unsuccessful" },
    estimate: { "--card": "--gpu", "--peak": "--mfu" },
    evaluate: { "--panel": "--benchmark" },
  },
  keys: {
    panel: "benchmark",
    "digests.panel": "digests.benchmark",
    "digests.world": "digests.environment",
  },
  errors: {
    ENGINE_REFUSED: "ENGINE_REJECTED",
    HUB_REFUSED: "HUB_REJECTED",
  },
  exports: {
    accumulate: "accumulateGradients",
    AdamWStep: "AdamWParameters",
    batches: "miniBatches",
    beliefs: "beliefMemory",
    beliefState: "beliefStateMemory",
    bySuccess: "successCurriculum",
    byTask: "groupByTask",
    CandidateRecord: "EstimatorCandidate",
    Candidates: "CandidateSet",
    Change: "AlgorithmPart",
    chunks: "chunkMemory",
    Column: "TokenColumn",
    describePanel: "describeBenchmark",
    Difference: "EvaluationDifference",
    evaluatePanel: "evaluateBenchmark",
    EvaluatePanelSetup: "EvaluateBenchmarkSetup",
    Field: "OptionField",
    Fields: "OptionFields",
    forkAt: "branchAt",
    ForkAtOptions: "BranchAtOptions",
    holder: "holderPo",
    horizon: "horizonCurriculum",
    ImportanceOptions: "RolloutCorrectionOptions",
    IterationSummary: "RecordedIteration",
    LossNeed: "LossColumn",
    Memory: "PromptMemory",
    metaReasoning: "metaReasoningMemory",
    mismatch: "mismatchMetrics",
    Need: "EstimatorStatistic",
    openEnv: "openenv",
    OpenEnvMoment: "OpenEnvResponse",
    openPanel: "openBenchmark",
    OpenPanelOptions: "OpenBenchmarkOptions",
    OptimizerStepReport: "OptimizerStepStatistics",
    OptimizerStepResult: "UpdateResult",
    Origin: "AlgorithmOrigin",
    Panel: "Benchmark",
    PanelDefinition: "BenchmarkDefinition",
    PanelDigests: "BenchmarkDigests",
    PanelEvaluation: "BenchmarkEvaluation",
    panelNames: "benchmarkNames",
    PanelReport: "BenchmarkReport",
    PanelTask: "BenchmarkTask",
    parallel: "parallelCopies",
    Pending: "PendingRequest",
    pinBenchmark: "createBenchmark",
    PinBenchmarkOptions: "CreateBenchmarkOptions",
    pinPanel: "createBenchmark",
    PinPanelOptions: "CreateBenchmarkOptions",
    plan: "planMemory",
    playEpisode: "streamEpisode",
    playExpert: "streamExpert",
    presets: "gigpoPresets",
    Progress: "StageProgress",
    Ramp: "ScheduleRamp",
    readSummaries: "readRecordedIterations",
    recent: "recentMemory",
    RecordedStep: "StepInput",
    reportPanel: "reportBenchmark",
    Resolved: "ResolvedOf",
    RunPlan: "EngineRequirements",
    skills: "skillMemory",
    stateBlock: "stateBlockMemory",
    Statistic: "TokenStatisticName",
    StepIndex: "StepLocation",
    StepRecord: "EstimatorStep",
    StepReport: "OptimizerStepStatistics",
    summary: "summaryMemory",
    tcod: "tcodCurriculum",
    TeacherWeightOptions: "TeacherTokenWeightOptions",
    teacherWeights: "teacherTokenWeights",
    TrainingStep: "CollectedStep",
  },
}

/**
 * Returns the new path of an unknown option. undefined if the option was not renamed.
 *
 * @param known - names of the options of its group
 * @param owner - function or part of a configuration whose options are read, such as sft. Default: unknown
 */
export function newName(
  path: readonly string[],
  known: readonly string[],
  owner?: string,
): readonly string[] | undefined {
  const above = path.slice(0, -1)
  const group = owner === "train" ? "training" : owner
  const to = lookup(renamed.options, group === undefined ? path : [group, ...path])?.split(".")
  return to && known.includes(to[0]!) ? [...above, ...to] : undefined
}

/**
 * Returns the new name of a value that an option rejects. undefined if the value was not renamed.
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

/** Text about the first key of a file that was renamed: '"panel" was renamed to "benchmark"'. undefined if there is none. */
export function renamedKey(file: unknown): string | undefined {
  const at = (path: string) =>
    path.split(".").reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], file)
  const found = Object.entries(renamed.keys).find(([old, to]) => at(old) !== undefined && at(to) === undefined)
  return found && `"${found[0]}" was renamed to "${found[1]}"`
}

/** Entry under the path with the group, or else under the name alone. */
function lookup(table: Readonly<Record<string, string>>, path: readonly string[]): string | undefined {
  const keys = [path.slice(-2).join("."), path.at(-1) ?? ""]
  return keys.filter((key) => Object.hasOwn(table, key)).map((key) => table[key])[0]
}
