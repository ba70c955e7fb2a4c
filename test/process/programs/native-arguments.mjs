// Calls everything that the addon exports with arguments that are not what it takes, one thing wrong at a time. TypeScript rejects most
// of them before; here each must give a result or a GigpoError, and the process must live to say so. The last line of stderr is
// the call that was under way.
import { writeSync } from "node:fs"
import { native } from "../../../modules/native/native.js"
import { GigpoError } from "../../../modules/util/errors.js"

const { Engine, Vocabulary, Grammar, setErrorClass, deviceReport, memoryPlan, ...kernels } = native()

const model = {
  vocabularySize: 31,
  hiddenSize: 8,
  intermediateSize: 8,
  layers: 1,
  heads: 2,
  keyValueHeads: 1,
  headSize: 4,
  maxPositions: 32,
  rmsNormEpsilon: 1e-6,
  ropeTheta: 1e4,
  ropeScaling: { type: "llama3", factor: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4, originalMaxPositions: 16 },
  layerTable: [{ window: 8, rope: 0 }],
  tieEmbeddings: true,
  queryKeyValueBias: false,
  queryKeyNorm: true,
}
const options = {
  device: "cpu",
  precision: "float32",
  threads: 1,
  microBatchTokens: 64,
  maxTrainTokens: 32,
  kvCacheBytes: 2 ** 16,
  recompute: "auto",
  sharePrefixes: true,
  sampleWithCublas: false,
  optimizerPrecision: "float32",
  adapter: {
    ranks: new Int32Array(7 * model.layers).fill(2),
    scales: new Float64Array(7 * model.layers).fill(2),
    whole: [],
    tied: false,
  },
  trained: true,
  reference: true,
  critic: true,
}
const yarn = {
  ...{ type: "yarn", factor: 4, originalMaxPositions: 8, attentionFactor: 1.1 },
  ...{ betaFast: 32, betaSlow: 1, truncate: true },
}
const floats = (...values) => Float32Array.of(...values)
const surrogate = {
  clipLow: 0.2,
  clipHigh: 0.2,
  clipDual: 3,
  klWeight: 0.1,
  klEstimator: "k3",
  aggregation: "sequence-mean-fixed-length",
  fixedLength: 4,
  importanceSamplingLevel: "token",
}
const loss = {
  ...surrogate,
  mode: "policy",
  temperature: 1,
  entropyWeight: 0.1,
  unit: "completion",
  skipZeroAdvantage: true,
}
const columns = [
  "advantages",
  "oldLogProbs",
  "referenceLogProbs",
  "coefficients",
  "entropyCoefficients",
  "returns",
  "oldValues",
]
const batch = {
  tokens: Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8),
  rowOffsets: Int32Array.of(0, 3, 8),
  spanRows: Int32Array.of(0, 1, 1),
  spanBegins: Int32Array.of(1, 1, 4),
  spanCounts: Int32Array.of(2, 2, 1),
  ...Object.fromEntries(columns.map((name) => [name, floats(0.1, -0.2, 0.3, -0.4, 0.5)])),
}
const surrogateInput = {
  ...Object.fromEntries(
    ["logProbs", "oldLogProbs", "advantages", "mask", "referenceLogProbs"].map((name) => [name, floats(1, 0.5, 1)]),
  ),
  lengths: Int32Array.of(1, 2),
}
const doubles = Float64Array.of(1, 2, 3)
const valueInput = { values: doubles, returns: doubles, oldValues: doubles, mask: doubles }
const adamW = { learningRate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0, maxGradientNorm: 1 }

const engine = new Engine(model, options)
const critic = await engine.critic().promise
await engine.freezeReference().promise
await engine.initialize([1, 2], 0.1).promise

// Tokens are the letters from a on, the last one ends a text; the grammar is "a", any number of times.
const letters = [
  Uint8Array.from({ length: 30 }, (_, i) => 97 + i),
  Int32Array.from({ length: 32 }, (_, i) => Math.min(i, 30)),
  Int32Array.of(30),
]
const vocabulary = new Vocabulary(...letters)
const onlyA = new Uint8Array(32)
onlyA[97 >> 3] = 1 << (97 & 7)
const asOften = [vocabulary, Int32Array.of(1, 1, 2, 0, 0, 0, 3, 0, 0), onlyA]
const grammar = new Grammar(...asOften)
const request = {
  prompt: Int32Array.of(1, 2, 3),
  maxTokens: 4,
  temperature: 1,
  topTokens: 0,
  stopTokens: Int32Array.of(7),
  key: [1, 2],
}

const anchors = [Int32Array.of(0, 0, 1), Uint8Array.of(1, 1, 2), Float64Array.of(0, 1, 2, 3)]

/** [name, function, its arguments]; `made` is what a constructor's call leaves to be disposed of. */
const calls = [
  ["new Engine", (...given) => new Engine(...given).dispose(), [model, options]],
  [
    "memoryPlan",
    memoryPlan,
    [{ ...model, ropeScaling: yarn, layerTable: [{ window: 0, rope: "none" }] }, options, 2 ** 32],
  ],
  ["new Critic", (...given) => new critic.constructor(...given), [{}]],
  ["new Vocabulary", (...given) => new Vocabulary(...given), letters],
  ["new Grammar", (...given) => new Grammar(...given), asOften],
  ["prepareGrammar", kernels.prepareGrammar, asOften],
  ["grammar.allowed", (...given) => grammar.allowed(...given), [Int32Array.of(0, 0)]],
  ["memoryPlan", memoryPlan, [model, options, 2 ** 32]],
  ["replicas", kernels.replicas, [2]],
  ["setErrorClass", (given) => (typeof given === "function" ? 0 : setErrorClass(given)), [GigpoError]],
  ["deviceReport", deviceReport, []],
  ["hideProcess", kernels.hideProcess, []],
  ["tokenLogProbs", kernels.tokenLogProbs, [floats(1, 2, 3, 4, 5, 6), 3, Int32Array.of(0, 2), 1, "cpu"]],
  ["clippedSurrogate", kernels.clippedSurrogate, [surrogateInput, surrogate, "cpu"]],
  ["valueLoss", kernels.valueLoss, [valueInput, 0.5]],
  ["quantize", kernels.quantize, ["Q8_0", new Float32Array(64)]],
  ["dequantize", kernels.dequantize, ["Q8_0", new Uint8Array(68)]],
  ["groupAnchors", kernels.groupAnchors, anchors],
  ["groupAnchorsOnGpu", kernels.groupAnchorsOnGpu, anchors],
  ["steps", (given) => Reflect.set(engine, "steps", given), [3]],
  ...[
    ["initialize", [[1, 2], 0.1]],
    ["freezeReference", []],
    ["sample", [request]],
    [
      "sample",
      [{ ...request, stopTokens: Int32Array.of(30), constraint: grammar, topTokens: 3, onTokens: () => false }],
    ],
    ["logits", [Int32Array.of(1, 2, 3)]],
    ["logProbs", [batch, "current", 1]],
    [
      "logProbs",
      [{ ...batch, tokens: batch.tokens.map(() => 0), constraints: [grammar, undefined, grammar] }, "current", 1],
    ],
    ["forwardBackward", [batch, loss]],
    ["write", ["weights", 0, 8, new Uint8Array(32), "F32"]],
    ["read", ["adapter", 0, 0, 8]],
    ["optimizerStep", [adamW]],
    ["clearGradients", []],
    ["critic", []],
  ].map(([name, given]) => [`engine.${name}`, (...all) => engine[name](...all), given]),
  ["critic.predict", (...all) => critic.predict(...all), [batch]],
  ["critic.forwardBackward", (...all) => critic.forwardBackward(...all), [batch, { clip: 0.5 }]],
]

/** What stands for any value. */
const strange = {
  missing: undefined,
  null: null,
  true: true,
  "-1": -1,
  0: 0,
  1.5: 1.5,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "2^31": 2 ** 31,
  "2^53": 2 ** 53,
  "1e300": 1e300,
  text: "text",
  symbol: Symbol("text"),
  bigint: 3n,
  object: {},
  list: [],
  "list of text": ["text", "text"],
  function: () => {},
  "a view": new DataView(new ArrayBuffer(8)),
  "bytes without a view": new ArrayBuffer(64),
  "a list that throws": new Proxy([], {
    get() {
      throw new GigpoError("INTERNAL", "a getter")
    },
  }),
}

/** What else may be wrong with a typed array; shared and resizable ones may do as well as any. */
const strangeArrays = {
  empty: (right) => right.slice(0, 0),
  shorter: (right) => right.slice(1),
  longer: (right) => new right.constructor(right.length + 1),
  "of another type": (right) => new (right instanceof Float32Array ? Int32Array : Float32Array)(right.length),
  "a plain list": (right) => [...right],
  detached: (right) => {
    const copy = right.slice()
    structuredClone(copy.buffer, { transfer: [copy.buffer] })
    return copy
  },
  "over shared memory": (right) => over(new SharedArrayBuffer(right.byteLength), right),
  "over resizable memory": (right) => over(resizable(right), right),
  "over memory that shrank": (right) => {
    const copy = over(resizable(right), right)
    copy.buffer.resize(4)
    return copy
  },
  "of set length over memory that shrank": (right) => {
    const { buffer } = over(resizable(right), right)
    const copy = new right.constructor(buffer, 0, right.length)
    buffer.resize(4)
    return copy
  },
  "in the middle of its memory": (right) => {
    const wide = new right.constructor(right.length + 2)
    wide.set(right, 1)
    return wide.subarray(1, -1)
  },
  "all -1": (right) => right.slice().fill(-1),
  "all 2^31 - 1": (right) => right.slice().fill(2 ** 31 - 1),
  "all NaN": (right) => right.slice().fill(Number.NaN),
  "all -2^31": (right) => right.slice().fill(-(2 ** 31)),
}
const resizable = (right) => new ArrayBuffer(right.byteLength, { maxByteLength: 2 * right.byteLength })
function over(buffer, right) {
  const result = new right.constructor(buffer)
  result.set(right)
  return result
}

/** Sizes that would be honoured are not tried: they are what memory is for, and the plan's to reject. */
const honoured = /\.(microBatchTokens|maxTrainTokens|kvCacheBytes)$/
const large = new Set(["2^31", "2^53", "1e300"])

function* variants(right, at) {
  for (const [name, value] of Object.entries(strange))
    if (!(honoured.test(at) && large.has(name))) yield [`${at} = ${name}`, value]
  if (ArrayBuffer.isView(right)) {
    for (const [name, make] of Object.entries(strangeArrays)) yield [`${at} = ${name}`, make(right)]
  } else if (typeof right === "object") {
    for (const key of Object.keys(right))
      for (const [name, value] of variants(right[key], `${at}.${key}`))
        yield [name, Object.assign(Array.isArray(right) ? [...right] : { ...right }, { [key]: value })]
  }
}

const wrong = []
let count = 0
const outcomes = { result: 0, GigpoError: 0 }

async function attempt(name, call, given) {
  writeSync(2, `${name}\n`)
  count++
  try {
    const started = call(...given)
    await (started?.promise ?? started)
    outcomes.result++
  } catch (error) {
    if (GigpoError.is(error)) outcomes.GigpoError++
    else wrong.push(`${name}: ${error}`)
  }
}

for (const [name, call, right] of calls) {
  await attempt(`${name} as it should be`, call, right)
  for (let count = 0; count < right.length; count++)
    await attempt(`${name} of ${count} arguments`, call, right.slice(0, count))
  for (const [index, one] of right.entries())
    for (const [what, value] of variants(one, `argument ${index}`))
      await attempt(`${name}: ${what}`, call, right.with(index, value))
}

// A method on another's object, and a class that is called as a function, are V8's to reject.
for (const [method, receiver] of [
  [engine.sample, critic],
  [critic.predict, engine],
  [engine.dispose, {}],
  [Engine, undefined],
]) {
  writeSync(2, `${method.name} on another object\n`)
  try {
    method.call(receiver)
    wrong.push(`${method.name} on another object gave a result`)
  } catch {}
}

await engine.dispose()
for (const name of ["sample", "forwardBackward", "read", "critic"]) {
  const [, call, given] = calls.find(([one]) => one === `engine.${name}`)
  await attempt(`${name} after dispose`, call, given)
}
console.log(JSON.stringify({ count, ...outcomes, wrong }))
