import { setTimeout as sleep } from "node:timers/promises"
import type { Environment } from "../../src/environment/environment.ts"
import { type DoorsTask, doorsEnvironment } from "./doors.ts"

// Whatever an environment may do in the same process. Each way stands in one place of an otherwise sound environment.

type Place = "start" | "first" | "prompt" | "parse" | "step" | "dispose"
type Do = (sound: () => unknown) => unknown

const never = () => new Promise<never>(() => {})
const raise = () => {
  throw new Error("chaos")
}
const circular: Record<string, unknown> = { terminated: false, truncated: false }
circular.observation = circular
const proto = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}')
const hostile = new Proxy({}, { get: raise, ownKeys: raise, has: raise, getPrototypeOf: raise })

/** Of what is given where an answer is expected, all is rejected. */
const wrong: Readonly<Record<string, unknown>> = {
  nothing: undefined,
  null: null,
  NaN: Number.NaN,
  infinity: Number.POSITIVE_INFINITY,
  "a number": 1e308,
  "a text": "x",
  "lone surrogates": "\ud800\udfff\udc00",
  "a symbol": Symbol("chaos"),
  "a function": () => {},
  "a list": [1, [2]],
  "a circular object": circular,
  "keys of prototypes": proto,
  "a hostile proxy": hostile,
  "an array of bytes": new Uint8Array(8),
  "a date": new Date(Number.NaN),
}

/** Of numbers that a step gives as its reward or a metric. */
const numbers: Readonly<Record<string, unknown>> = {
  NaN: Number.NaN,
  infinity: Number.NEGATIVE_INFINITY,
  "1e308": 1e308,
  "a text": "1",
  "a big integer": 1n,
  "a list": [1],
  nothing: undefined,
  null: null,
  "a hostile object": hostile,
}

const change = (changes: object) => async (sound: () => unknown) => ({ ...((await sound()) as object), ...changes })
/** Of a promise that is given in place of an answer: rejected later, when the answer has been rejected already. */
const later = () => sleep(5).then(raise)

/** What costs its episodes, by where it happens. */
export const faults: readonly (readonly [place: Place, what: string, act: Do])[] = [
  ...(["start", "prompt", "parse", "step"] as const).flatMap((place) => [
    [place, "throws", raise] as const,
    [place, "throws nothing", () => Promise.reject(undefined)] as const,
    [place, "rejects later", later] as const,
    ...Object.entries(wrong).map(([what, value]) => [place, `gives ${what}`, () => value] as const),
  ]),
  ["start", "hangs", never],
  ["step", "hangs", never],
  ...Object.entries(wrong).map(([what, value]) => ["first", `is ${what}`, () => value] as const),
  ...Object.entries(wrong)
    .filter(([what]) => what !== "a text" && what !== "lone surrogates")
    .flatMap(([what, value]) => [
      ["first", `has ${what} for its text`, change({ text: value })] as const,
      ["first", `has ${what} for its anchor`, change({ anchor: value })] as const,
      ["step", `observes ${what}`, change({ observation: value })] as const,
    ]),
  ...Object.entries(numbers).map(([what, value]) => ["step", `pays ${what}`, change({ reward: value })] as const),
  ...Object.entries(numbers)
    .filter(([what]) => what !== "1e308")
    .map(([what, value]) => ["step", `measures ${what}`, change({ metrics: { success: value } })] as const),
  ["step", "ends with a word", change({ terminated: "yes" })],
  ["step", "pays a promise that rejects later", (sound) => change({ reward: later() })(sound)],
  ["step", "observes a promise that rejects later", (sound) => change({ observation: later() })(sound)],
  ["parse", "gives an action that is a promise that rejects later", () => ({ action: later(), valid: true })],
  ["prompt", "gives no messages", () => []],
  ["prompt", "gives half a message", () => [{ role: "user" }]],
]

/** What costs nothing at all, or is what an environment may do. */
export const oddities: readonly (readonly [place: Place, what: string, act: Do])[] = [
  ["dispose", "throws", raise],
  ["dispose", "rejects later", later],
  ["dispose", "hangs", never],
  ["dispose", "is slow", () => sleep(30)],
  ["step", "is slow", async (sound) => await sleep(10).then(sound)],
  [
    "step",
    "measures under the names of prototypes",
    change({ metrics: JSON.parse('{"__proto__": 1, "constructor": 2}') }),
  ],
  ["step", "measures 1e308", change({ metrics: { large: 1e308 } })],
  ["step", "pays as much as can be", change({ reward: 1e99 })],
  ["step", "gives lone surrogates", change({ observation: { text: "\ud800 \udc00", anchor: "\udfff" } })],
  ["step", "gives more than it is asked for", change(proto)],
]

/** Doors environment with injected faults in the task of this index. */
export function chaosEnvironment(index: number, place: Place, act: Do): Environment<DoorsTask> {
  const sound = doorsEnvironment()
  let now: DoorsTask | undefined // parse() is not told the task; prompts and replies of one episode come in turn
  const at = (here: Place, task: DoorsTask | undefined, otherwise: () => unknown) =>
    (here === place && task?.index === index ? act(otherwise) : otherwise()) as never
  return {
    ...sound,
    start: (task, context) =>
      at("start", task, async () => {
        const episode = await sound.start(task, context)
        return {
          first: await at("first", task, () => episode.first),
          step: (action: string) => at("step", task, () => episode.step(action)),
          [Symbol.asyncDispose]: () => at("dispose", task, () => episode[Symbol.asyncDispose]?.()),
        }
      }),
    prompt(task, history, observation) {
      now = task
      return at("prompt", task, () => sound.prompt(task, history, observation))
    },
    parse: (completion, observation) => at("parse", now, () => sound.parse(completion, observation)),
  }
}
