// Every named estimator and loss as a variant, by what src/algorithms says that asks for it.
import { algorithms } from "../../modules/entries/algorithms.js"
import { critic, onPolicy, settings } from "./recipes.mjs"

/** What is told of steps by bench/paper/told.mjs. */
const told = (by) => ({ "training.estimator": { use: "../bench/paper/told.mjs", by } })
const of = (key, value) => settings(`training.${key}`, value)

const each = (names, setsOf) => Object.fromEntries(names.map((name) => [name, setsOf(name)]))
const once = { ...of("updates", onPolicy.updates), ...of("optimizer", onPolicy.optimizer) }

/** What one needs beside the table's settings, to play in any world or to stay stable with a model this small, by its name. */
const besides = {
  ...each(["ppo", "step-ppo", "turn-ppo"], () => of("critic", critic)),
  ...each(["gpg", "reinforce"], () => once),
  dro: { ...once, "training.loss.beta": 1, "training.estimator.normalization": "sample" },
  tcod: { "training.curriculum.every": 1 },
  ...each(["a2tgpo", "igpo", "rebel", "strata", "vine-ppo"], told),
}

/** Cloned longer than what learns from it. */
const teacher = { name: "taught", set: { "sft.epochs": 12 } }

const isOf = (key) => /^training\.(estimator|loss)\.name$/.test(key)
const isName = (key) => /^training\.\w+\.name$/.test(key)

/** Those that a configuration asks for by an estimator or a loss; where several are asked for alike the first. */
export const everyAlgorithm = [
  ...new Map(
    algorithms
      .filter(({ set = {} }) => Object.keys(set).some(isOf))
      .map(({ system, set }) => [JSON.stringify(set), variantOf(system, set)])
      .reverse(),
  ).values(),
].reverse()

function variantOf(system, { "environment.memory": _, ...set }) {
  const names = Object.entries(set).flatMap(([key, value]) => (isName(key) ? [value] : []))
  const own = Object.assign({}, ...names.map((name) => besides[name] ?? {}))
  // One of one's own has no name.
  const { "training.estimator.name": named, ...rest } = set
  return {
    name: system.replace(/ \(.*/, ""),
    set: { ...(own["training.estimator"] ? rest : set), ...own },
    ...(names.includes("distillation") && { teacher }),
  }
}
