import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { NativePolicy, Random, type RemoteEngineOptions, Run, Tokenizer } from "../src/entries/index.ts"
import { readModelConfig } from "../src/model-files/model-config.ts"
import { arpoBranches } from "../src/rollout/hooks/entropy-branching.ts"
import { t2poCut, t2poResamples, t2poScore } from "../src/rollout/hooks/t2po-score.ts"
import { trainByteLevelTokenizer } from "../src/tokenizer/train.ts"
import { writeTokenizer } from "../src/tokenizer/write.ts"
import { modelPath } from "./engine/fixtures.ts"
import { entryValues } from "./entries/values.ts"

const tinyConfig = { ...(await readModelConfig(modelPath("qwen2"))), vocabularySize: 300 }

const folder = mkdtempSync(join(tmpdir(), "gigpo-arguments-"))
afterAll(() => rmSync(folder, { recursive: true }))

/** The values of every entry point, and internal functions that take options. */
const gigpo = {
  ...entryValues,
  ...{ arpoBranches, t2poCut, t2poResamples, t2poScore },
  ...{ trainByteLevelTokenizer, writeTokenizer },
}

// JavaScript hands in what the compiler would reject.
const anything = (value: unknown) => value as never
const segment = new Float32Array(1)

let policy: NativePolicy
let tokenizer: Tokenizer
beforeAll(async () => {
  policy = await NativePolicy.create(tinyConfig, new Random(1), { device: "cpu", threads: 1 })
  const bpe = await gigpo.trainByteLevelTokenizer(["a"], { vocabularySize: 260 })
  await gigpo.writeTokenizer(join(folder, "tokenizer"), bpe)
  tokenizer = await Tokenizer.open(join(folder, "tokenizer"))
})
afterAll(async () => {
  await policy.dispose()
  await tokenizer.dispose()
})

interface Case {
  readonly call: (options: never) => unknown
  /** A key with a slip, and the key that was meant. */
  readonly slip: readonly [typed: string, meant: string]
}

const setups: Readonly<Record<string, Case>> = {
  train: { call: gigpo.train, slip: ["optimiser", "optimizer"] },
  sft: { call: gigpo.sft, slip: ["completionsPerUpdat", "completionsPerUpdate"] },
  evaluate: { call: gigpo.evaluate, slip: ["temprature", "temperature"] },
  evaluateBenchmark: { call: gigpo.evaluateBenchmark, slip: ["repeets", "repeats"] },
  createBenchmark: {
    call: (options) => gigpo.createBenchmark(join(folder, "a.json"), options),
    slip: ["task", "tasks"],
  },
  initializeModel: { call: gigpo.initializeModel, slip: ["enviroment", "environment"] },
  rollout: { call: gigpo.rollout, slip: ["groupsize", "groupSize"] },
  runEpisode: { call: gigpo.runEpisode, slip: ["maxStep", "maxSteps"] },
  streamEpisode: { call: gigpo.streamEpisode, slip: ["maxCompletionToken", "maxCompletionTokens"] },
  streamExpert: { call: gigpo.streamExpert, slip: ["environmentTimout", "environmentTimeout"] },
  recordEpisodes: { call: gigpo.recordEpisodes, slip: ["evry", "every"] },
  serveRetriever: { call: gigpo.serveRetriever, slip: ["topK_", "topk"] },
  accumulateGradients: {
    call: (options) => gigpo.accumulateGradients(policy, [], gigpo.crossEntropy(), options),
    slip: ["imitations", "imitation"],
  },
  adaptiveKl: { call: gigpo.adaptiveKl, slip: ["horizont", "horizon"] },
  wrapEstimator: { call: (options) => gigpo.wrapEstimator(gigpo.grpo(), options), slip: ["changes", "change"] },
  policyLoss: { call: (input) => gigpo.policyLoss(input), slip: ["oldLogProb", "oldLogProbs"] },
  generalizedAdvantages: {
    call: (options) =>
      gigpo.generalizedAdvantages(new Float64Array(1), new Float64Array(1), options, new Int32Array(1)),
    slip: ["lamda", "lambda"],
  },
  groupBySimilarity: { call: (options) => gigpo.groupBySimilarity([], [], options), slip: ["treshold", "threshold"] },
  memoryPlan: { call: (config) => gigpo.memoryPlan(config), slip: ["layer", "layers"] },
  readAction: { call: (form) => gigpo.readAction("", form), slip: ["keepcase_", "keepCase"] },
  similarityLevels: { call: gigpo.similarityLevels, slip: ["autojunc", "autojunk"] },
  trainByteLevelTokenizer: {
    call: (options) => gigpo.trainByteLevelTokenizer([], options),
    slip: ["specialToken", "specialTokens"],
  },
  valueLoss: { call: (input) => gigpo.valueLoss(input), slip: ["oldValue", "oldValues"] },
  "NativePolicy.create": {
    call: (config) => NativePolicy.create(config, new Random(1)),
    slip: ["hiddensizes", "hiddenSize"],
  },
  "policy.sample": { call: (request) => policy.sample(request), slip: ["maxToken", "maxTokens"] },
  "policy.optimizerStep": { call: (step) => policy.optimizerStep(step), slip: ["learningrate_", "learningRate"] },
  "Run.open, its configuration": {
    call: (config) => Run.open(folder, config === undefined ? config : anything([config])),
    slip: ["", ""],
  },
}

const optional: Readonly<Record<string, Case>> = {
  recentMemory: { call: gigpo.recentMemory, slip: ["histry", "history"] },
  stateBlockMemory: { call: gigpo.stateBlockMemory, slip: ["maxCharcters", "maxCharacters"] },
  summaryMemory: { call: gigpo.summaryMemory, slip: ["evry", "every"] },
  chunkMemory: { call: gigpo.chunkMemory, slip: ["chunksize", "chunkSize"] },
  skillMemory: { call: gigpo.skillMemory, slip: ["topK", "topk"] },
  planMemory: { call: gigpo.planMemory, slip: ["evry", "every"] },
  beliefStateMemory: { call: gigpo.beliefStateMemory, slip: ["maxCharcters", "maxCharacters"] },
  metaReasoningMemory: { call: gigpo.metaReasoningMemory, slip: ["maxCharcters", "maxCharacters"] },
  reasoningRewards: { call: gigpo.reasoningRewards, slip: ["planing", "planning"] },
  beliefMemory: { call: gigpo.beliefMemory, slip: ["maxCharcters", "maxCharacters"] },
  tcodCurriculum: { call: gigpo.tcodCurriculum, slip: ["directoin", "direction"] },
  horizonCurriculum: { call: gigpo.horizonCurriculum, slip: ["form", "from"] },
  actGuideCurriculum: { call: gigpo.actGuideCurriculum, slip: ["probs", "probes"] },
  successCurriculum: { call: gigpo.successCurriculum, slip: ["poolsize", "poolSize"] },
  parallelCopies: { call: (options) => gigpo.parallelCopies(gigpo.numberLine(), options), slip: ["copis", "copies"] },
  planFirst: { call: (options) => gigpo.planFirst(gigpo.numberLine(), options), slip: ["headng", "heading"] },
  lookFirst: { call: (options) => gigpo.lookFirst(gigpo.numberLine(), options), slip: ["step", "steps"] },
  entropyBranching: { call: gigpo.entropyBranching, slip: ["treshold", "threshold"] },
  arpoBranches: { call: (options) => gigpo.arpoBranches(0, 0, 0, options), slip: ["treshold", "threshold"] },
  expertProgress: { call: gigpo.expertProgress, slip: ["maxStep", "maxSteps"] },
  judge: { call: gigpo.judge, slip: ["modle", "model"] },
  branchAt: { call: gigpo.branchAt, slip: ["steps", "step"] },
  informationGain: { call: gigpo.informationGain, slip: ["answerPrefx", "answerPrefix"] },
  oracleCandidates: { call: gigpo.oracleCandidates, slip: ["cuont", "count"] },
  t2po: { call: gigpo.t2po, slip: ["maxThinkingToken", "maxThinkingTokens"] },
  t2poCut: { call: (options) => gigpo.t2poCut([], options), slip: ["flatToken", "flatTokens"] },
  t2poResamples: {
    call: (options) => gigpo.t2poResamples(0, 0, 0, options),
    slip: ["resampleThreshhold", "resampleThreshold"],
  },
  t2poScore: { call: (options) => gigpo.t2poScore([], [], 2, options), slip: ["entropyWeigth", "entropyWeight"] },
  thinkWhenUnsure: { call: gigpo.thinkWhenUnsure, slip: ["treshold", "threshold"] },
  sokoban: { call: gigpo.sokoban, slip: ["boxs", "boxes"] },
  alfworld: { call: gigpo.alfworld, slip: ["taskType", "taskTypes"] },
  numberLine: { call: gigpo.numberLine, slip: ["maxStep", "maxSteps"] },
  ezPoints: { call: gigpo.ezPoints, slip: ["rewards", "reward"] },
  points24: { call: gigpo.points24, slip: ["solveable", "solvable"] },
  blackjack: { call: gigpo.blackjack, slip: ["promt", "prompt"] },
  taskFile: { call: gigpo.taskFile, slip: ["testTask", "testTasks"] },
  processAgent: { call: gigpo.processAgent, slip: ["graze", "grace"] },
  anchorCoverage: { call: (options) => gigpo.anchorCoverage([], options), slip: ["similarty", "similarity"] },
  openenv: { call: gigpo.openenv, slip: ["messageTimout", "messageTimeout"] },
  openGateway: { call: gigpo.openGateway, slip: ["prot", "port"] },
  readEpisodes: { call: (range) => gigpo.readEpisodes(folder, range), slip: ["form", "from"] },
  readRecordedIterations: { call: (range) => gigpo.readRecordedIterations(folder, range), slip: ["form", "from"] },
  openView: { call: (options) => gigpo.openView([folder], options), slip: ["prot", "port"] },
  writeReport: {
    call: (options) => gigpo.writeReport([folder], join(folder, "report.html"), options),
    slip: ["overwrit", "overwrite"],
  },
  exportGames: {
    call: (options) => gigpo.exportGames(anything({ name: "none", tasks: [] }), join(folder, "games"), options),
    slip: ["onProgres", "onProgress"],
  },
  mlflow: { call: gigpo.mlflow, slip: ["experimnt", "experiment"] },
  trackio: { call: gigpo.trackio, slip: ["projct", "project"] },
  wandb: { call: gigpo.wandb, slip: ["projct", "project"] },
  tensorBoard: { call: gigpo.tensorBoard, slip: ["directry", "directory"] },
  describeRun: { call: (options) => gigpo.describeRun(folder, options), slip: ["withn", "within"] },
  sql: { call: gigpo.sql, slip: ["question", "questions"] },
  search: { call: gigpo.search, slip: ["question", "questions"] },
  webshop: { call: gigpo.webshop, slip: ["product", "products"] },
  openBenchmark: { call: (options) => gigpo.openBenchmark("cards/ez-points@1", options), slip: ["histroy", "history"] },
  "openBenchmark, how": {
    call: (how) => gigpo.openBenchmark("cards/ez-points@1", {}, how),
    slip: ["concurency", "concurrency"],
  },
  openEnvironment: { call: (options) => gigpo.openEnvironment("sokoban", options), slip: ["histroy", "history"] },
  checkEnvironment: {
    call: (options) => gigpo.checkEnvironment(gigpo.numberLine(), options),
    slip: ["timelimits", "timeLimit"],
  },
  openCorpus: { call: (options) => gigpo.openCorpus(join(folder, "none"), options), slip: ["onprogres", "onProgress"] },
  "memoryPlan, its options": { call: (options) => gigpo.memoryPlan(tinyConfig, options), slip: ["thread", "threads"] },
  "policyLoss, its options": {
    call: (options) => {
      const [lengths, values] = [Int32Array.of(1), { oldLogProbs: segment, advantages: segment, mask: segment }]
      return gigpo.policyLoss({ logProbs: segment, lengths, ...values }, options)
    },
    slip: ["cliplows", "clipLow"],
  },
  groupAnchors: { call: (options) => gigpo.groupAnchors([1], ["a"], options), slip: ["devise", "device"] },
  tokenLogProbs: {
    call: (options) => gigpo.tokenLogProbs(segment, 1, Int32Array.of(0), options),
    slip: ["temprature", "temperature"],
  },
  "valueLoss, its options": {
    call: (options) => gigpo.valueLoss({ values: segment, returns: segment }, options),
    slip: ["clips", "clip"],
  },
  importanceWeights: {
    call: (options) => gigpo.importanceWeights([], [], [0], options),
    slip: ["truncat", "truncate"],
  },
  composeLoss: {
    call: (options) => gigpo.composeLoss(gigpo.crossEntropy(), options),
    slip: ["klweights", "klWeight"],
  },
  teacherTokenWeights: { call: (options) => gigpo.teacherTokenWeights(gigpo.grpo(), options), slip: ["alfa", "alpha"] },
  tokenWeights: { call: (options) => gigpo.tokenWeights(gigpo.grpo(), options), slip: ["thinks", "think"] },
  normalizer: { call: gigpo.normalizer, slip: ["epsilons", "epsilon"] },
  gigpoAdvantages: { call: (options) => gigpo.gigpoAdvantages([], options), slip: ["omeg", "omega"] },
  grpoAdvantages: { call: (options) => gigpo.grpoAdvantages([], options), slip: ["gama", "gamma"] },
  gdpo: { call: gigpo.gdpo, slip: ["channel", "channels"] },
  gigpo: { call: gigpo.gigpo, slip: ["gama", "gamma"] },
  empg: { call: gigpo.empg, slip: ["sharpnes", "sharpness"] },
  gigpoTree: { call: gigpo.gigpoTree, slip: ["omeg", "omega"] },
  igpo: { call: gigpo.igpo, slip: ["groupby", "groupBy"] },
  memAgent: { call: gigpo.memAgent, slip: ["singletonEpisodes", "singletonEpisode"] },
  mica: { call: gigpo.mica, slip: ["progres", "progress"] },
  parallelVariety: { call: (options) => gigpo.parallelVariety([], options), slip: ["actionBas", "actionBase"] },
  rebel: { call: gigpo.rebel, slip: ["beleif", "belief"] },
  rewardFlow: { call: gigpo.rewardFlow, slip: ["arrival", "arrivals"] },
  spear: { call: gigpo.spear, slip: ["capasity", "capacity"] },
  strata: { call: gigpo.strata, slip: ["strategi", "strategy"] },
  vinePpo: { call: gigpo.vinePpo, slip: ["valu", "value"] },
  vpr: { call: gigpo.vpr, slip: ["scor", "score"] },
  whiten: { call: (options) => gigpo.whiten(new Float64Array(1), undefined, options), slip: ["epsilons", "epsilon"] },
  gpg: { call: gigpo.gpg, slip: ["penaltyPlacment", "penaltyPlacement"] },
  grpo: { call: gigpo.grpo, slip: ["gama", "gamma"] },
  opo: { call: gigpo.opo, slip: ["penaltyPlacment", "penaltyPlacement"] },
  passAtK: { call: gigpo.passAtK, slip: ["epsilons", "epsilon"] },
  ppo: { call: gigpo.ppo, slip: ["lamda", "lambda"] },
  reinforcePlusPlus: { call: gigpo.reinforcePlusPlus, slip: ["gama", "gamma"] },
  reinforcePlusPlusBaseline: { call: gigpo.reinforcePlusPlusBaseline, slip: ["singletonEpisodes", "singletonEpisode"] },
  remax: { call: gigpo.remax, slip: ["penaltyPlacment", "penaltyPlacement"] },
  rloo: { call: gigpo.rloo, slip: ["epsilons", "epsilon"] },
  clipCov: { call: gigpo.clipCov, slip: ["covarianceShares", "covarianceShare"] },
  clippedSurrogate: { call: gigpo.clippedSurrogate, slip: ["cliplows", "clipLow"] },
  actGuide: { call: gigpo.actGuide, slip: ["cliplows", "clipLow"] },
  dgpo: { call: gigpo.dgpo, slip: ["taus", "tau"] },
  dgpoWeights: { call: (options) => gigpo.dgpoWeights([], [], options), slip: ["kapa", "kappa"] },
  distillation: { call: gigpo.distillation, slip: ["divergense", "divergence"] },
  dpo: { call: gigpo.dpo, slip: ["betas", "beta"] },
  dppoKl: { call: gigpo.dppoKl, slip: ["truncat", "truncate"] },
  dppoTv: { call: gigpo.dppoTv, slip: ["truncat", "truncate"] },
  dro: { call: gigpo.dro, slip: ["betas", "beta"] },
  gmpo: { call: gigpo.gmpo, slip: ["cliplows", "clipLow"] },
  gspo: { call: gigpo.gspo, slip: ["cliplows", "clipLow"] },
  holderPo: { call: gigpo.holderPo, slip: ["varient", "variant"] },
  holderSchedule: { call: (options) => gigpo.holderSchedule("sin", options), slip: ["lowst", "lowest"] },
  klCov: { call: gigpo.klCov, slip: ["penalti", "penalty"] },
  sapo: { call: gigpo.sapo, slip: ["temperaturPositive", "temperaturePositive"] },
  writeTokenizer: {
    call: async (options) => {
      const bpe = await gigpo.trainByteLevelTokenizer([], { vocabularySize: 260 })
      await gigpo.writeTokenizer(join(folder, "other"), bpe, options)
    },
    slip: ["chattemplates", "chatTemplate"],
  },
  "NativePolicy.save": {
    call: (options) => policy.save(join(folder, "new"), options),
    slip: ["overwrit", "overwrite"],
  },
  "RemoteEngine.open": {
    call: (options) => gigpo.RemoteEngine.open(folder, options),
    slip: ["urll", "url"],
  },
  "RemoteEngine.connect": {
    call: (options) =>
      gigpo.RemoteEngine.connect({ vocabularySize: 9, maxPositions: 9, parameters: 9 }, options as RemoteEngineOptions),
    slip: ["urll", "url"],
  },
  "NativePolicy.open": { call: (options) => NativePolicy.open(folder, options), slip: ["precission", "precision"] },
  "NativePolicy.create, its options": {
    call: (options) => NativePolicy.create(tinyConfig, new Random(1), options),
    slip: ["microBatchToken", "microBatchTokens"],
  },
  "Tokenizer.open": { call: (limits) => Tokenizer.open(folder, limits), slip: ["timeoutsMs", "timeoutMs"] },
  "tokenizer.renderChat": { call: (options) => tokenizer.renderChat([], options), slip: ["variable", "variables"] },
  "policy.logProbs": { call: (options) => policy.logProbs([], options), slip: ["need", "needs"] },
  "Run.open": { call: (options) => Run.open(join(folder, "run"), {}, options), slip: ["overwrit", "overwrite"] },
}

/** Arguments are plain values: columns, rows, texts, numbers, or custom parts. */
const plain = [
  ...["acrossTasks", "anchorLevels", "toBatch", "discountedReturn", "discountedReturns", "generalizedAdvantages"],
  ...["groupByAnchor", "klRewards", "mismatchMetrics", "crossEntropy"],
  ...["transcripts", "recordedEpisodes", "joinHooks", "monteCarlo", "beliefRewards"],
  ...[
    "scheduleValue",
    "scheduleValues",
    "readOptions",
    "miniBatches",
    "groupByTask",
    "collectSteps",
    "layOutSequences",
  ],
  ...[
    "toSequences",
    "sampledPositions",
    "sampledTokens",
    "stepSequence",
    "environmentTasks",
    "takeTasks",
    "firstContained",
  ],
  ...["episodesToJsonl", "episodesToParquet", "findRuns", "readGroup", "readEvaluation", "writeEvaluation"],
  ...["compareEvaluations", "tInterval", "pairedInterval"],
  ...["historyLevels", "informationGains", "answerProbabilities", "keyLevels", "treeLevels"],
  ...["describeBenchmark", "reportBenchmark"],
  ...["readTagged", "stripVolatileText", "rememberTurns", "replayFailure", "deviceReport", "agentLoop", "jsonSchema"],
  ...["completionSpans", "tokenKinds", "tokenTexts"],
  ...["candidateSequences", "candidateScores"],
  ...["messageOf", "decodeImage", "encodePng"],
]

/** Waits for whatever comes of a call, the first of many included. */
async function settle(call: () => unknown): Promise<unknown> {
  const made = (await call()) as Partial<AsyncGenerator> | undefined
  return typeof made?.next === "function" ? await made.next() : made
}

const refusal = (message: string | RegExp) =>
  expect.objectContaining({
    code: expect.stringMatching(/^BAD_(ARGUMENT|CONFIG)$/),
    message: expect.stringMatching(message),
  })

/** Estimators and losses carry their options, so that those without a line above are tried by the first of these. */
const defined = Object.fromEntries(
  Object.entries(gigpo).flatMap(([name, value]): [string, Case][] => {
    if (typeof value !== "function" || !("fields" in value) || name in optional) return []
    const [key] = Object.keys(value.fields as object)
    return key === undefined ? [] : [[name, { call: value as Case["call"], slip: [`${key}s`, key] }]]
  }),
)

/** Estimators and losses that have no options. */
const withoutOptions = Object.entries(gigpo).flatMap(([name, value]) =>
  typeof value === "function" && "fields" in value && Object.keys(value.fields as object).length === 0 ? [name] : [],
)

describe("public functions", () => {
  it("that take options are all tried here", () => {
    const functions = Object.entries(gigpo).filter(
      ([, value]) => typeof value === "function" && !/^class\b/.test(Function.prototype.toString.call(value)),
    )
    const known = new Set([setups, optional, defined].flatMap(Object.keys).concat(plain, withoutOptions))
    expect(functions.map(([name]) => name).filter((name) => !known.has(name))).toEqual([])
  })

  it.each(Object.entries(setups))("%s needs its options", async (_, { call }) => {
    await expect(settle(() => call(anything(undefined)))).rejects.toEqual(refusal(/./))
  })

  const all = Object.entries({ ...setups, ...optional, ...defined })
  it.each(all)("%s rejects what is no object", async (_, { call }) => {
    for (const wrong of [null, 7, "text", []])
      await expect(settle(() => call(anything(wrong)))).rejects.toEqual(refusal(/object|a list|needs/))
  })

  it.each(all.filter(([, { slip }]) => slip[0] !== ""))("%s rejects an unknown key", async (_, { call, slip }) => {
    const [typed, meant] = slip
    const given = { [typed]: 1 }
    await expect(settle(() => call(anything(given)))).rejects.toEqual(
      refusal(new RegExp(`${typed}.*did you mean "?${meant}\\b`, "s")),
    )
  })

  it.each([
    ["train", () => gigpo.train(anything({}))],
    ["train", () => gigpo.train(anything({ policy, tokenizer }))],
    ["train", () => gigpo.train(anything({ policy, environment: gigpo.numberLine() }))],
    ["sft", () => gigpo.sft(anything({ policy, tokenizer }))],
    ["sft", () => gigpo.sft(anything({ environment: gigpo.numberLine() }))],
    ["evaluate", () => gigpo.evaluate(anything({ policy, tokenizer }))],
    ["evaluate", () => gigpo.evaluate(anything({ environment: gigpo.numberLine() }))],
    ["initializeModel", () => gigpo.initializeModel(anything({ directory: join(folder, "model") }))],
    ["initializeModel", () => gigpo.initializeModel(anything({ environment: gigpo.numberLine() }))],
    ["NativePolicy.open", () => NativePolicy.open(anything(undefined))],
    ["NativePolicy.create", () => NativePolicy.create(tinyConfig, anything(undefined))],
    ["Tokenizer.open", () => Tokenizer.open(anything(null))],
    ["Run.open", () => Run.open(anything(undefined), {})],
    ["openCorpus", () => gigpo.openCorpus(anything(undefined))],
    ["openEnvironment", () => gigpo.openEnvironment(anything(7))],
    ["takeTasks", () => gigpo.takeTasks(anything(undefined), "train", new Random(1), 1)],
    ["environmentTasks", () => gigpo.environmentTasks(anything(undefined), "train", new Random(1))],
    ["gigpoAdvantages", () => gigpo.gigpoAdvantages(anything(undefined))],
    ["grpoAdvantages", () => gigpo.grpoAdvantages(anything(null))],
    ["toBatch", () => gigpo.toBatch(anything(7))],
    ["composeLoss", () => gigpo.composeLoss(anything(undefined))],
    ["policy.forwardBackward", () => policy.forwardBackward(anything(undefined), { kind: "cross-entropy" })],
    ["policy.forwardBackward", () => policy.forwardBackward([], anything(undefined))],
    ["policy.logProbs", () => policy.logProbs(anything(undefined))],
    ["recordEpisodes", () => gigpo.recordEpisodes(anything({}))],
    ["readEpisodes", () => gigpo.readEpisodes(anything(undefined))],
    ["readRecordedIterations", () => gigpo.readRecordedIterations(anything(7))],
    ["readGroup", () => gigpo.readGroup(anything(undefined), 1, 0)],
    ["episodesToJsonl", () => gigpo.episodesToJsonl(folder, anything(undefined))],
    ["episodesToParquet", () => gigpo.episodesToParquet(anything(undefined), join(folder, "steps.parquet"))],
    ["findRuns", () => gigpo.findRuns(anything(undefined))],
    ["describeRun", () => gigpo.describeRun(anything(""))],
    ["describeBenchmark", () => gigpo.describeBenchmark(anything(undefined))],
    ["openBenchmark", () => gigpo.openBenchmark(anything(7))],
    ["createBenchmark", () => gigpo.createBenchmark(anything(""), { environment: "sokoban", tasks: 1 })],
    ["createBenchmark", () => gigpo.createBenchmark(join(folder, "a.json"), anything({ tasks: 1 }))],
    ["evaluateBenchmark", () => gigpo.evaluateBenchmark(anything({ policy, tokenizer }))],
    ["reportBenchmark", () => gigpo.reportBenchmark(anything(undefined))],
    ["readEvaluation", () => gigpo.readEvaluation(anything(undefined))],
    ["writeEvaluation", () => gigpo.writeEvaluation(join(folder, "evaluation.jsonl"), anything(7))],
    ["exportGames", () => gigpo.exportGames(anything(undefined), join(folder, "games"))],
    ["exportGames", () => gigpo.exportGames(anything({ name: "none", tasks: [] }), anything(undefined))],
    ["compareEvaluations", () => gigpo.compareEvaluations(anything({ header: {}, episodes: [] }), anything(7))],
    ["tInterval", () => gigpo.tInterval(anything(undefined))],
    ["pairedInterval", () => gigpo.pairedInterval([1], anything(undefined))],
    ["openView", () => gigpo.openView(anything(undefined))],
    ["writeReport", () => gigpo.writeReport([folder], anything(undefined))],
  ])("%s says what is missing", async (_, call) => {
    await expect(settle(call)).rejects.toEqual(refusal(/^.{15,}\.$/s))
  })
})
