// All named estimators and losses as variants, with the options from src/algorithms.

import { algorithms } from "../../modules/entries/algorithms.js"
import { critic, onPolicy, settings } from "./recipes.mjs"

const of = (key, value) => settings(`training.${key}`, value)

const each = (names, setsOf) => Object.fromEntries(names.map((name) => [name, setsOf(name)]))
const once = { ...of("updatesPerEpoch", onPolicy.updatesPerEpoch), ...of("optimizer", onPolicy.optimizer) }

/** Additional settings by name of estimator or loss, which are needed in all worlds or for stability with such a small model. */
const besides = {
  ...each(["ppo", "step-ppo", "turn-ppo"], () => of("critic", critic)),
  ...each(["gpg", "reinforce"], () => once),
  dro: { ...once, "training.loss.beta": 1, "training.estimator.normalization": "sample" },
  tcod: { "training.curriculum.every": 1 },
}

/** Teacher with more SFT than the student. */
const teacher = { name: "taught", set: { "sft.epochs": 12 } }

const isOf = (key) => /^training\.(estimator|loss)\.name$/.test(key)
const isName = (key) => /^training\.\w+\.name$/.test(key)

/** Whether the algorithm has all it needs in the worlds of this benchmark: Sokoban and the number line. */
const isAtHome = ({ environments = ["sokoban"] }) => environments.includes("sokoban")

/** Algorithms that a configuration selects by an estimator or a loss. Of algorithms with equal settings, only the first. */
export const everyAlgorithm = [
  ...new Map(
    algorithms
      .filter((algorithm) => isAtHome(algorithm) && Object.keys(algorithm.set ?? {}).some(isOf))
      .map(({ system, set }) => [JSON.stringify(set), variantOf(system, set)])
      .reverse(),
  ).values(),
].reverse()

function variantOf(system, { "environment.memory": _, ...set }) {
  const names = Object.entries(set).flatMap(([key, value]) => (isName(key) ? [value] : []))
  const own = Object.assign({}, ...names.map((name) => besides[name] ?? {}))
  return {
    name: system.replace(/ \(.*/, ""),
    set: { ...set, ...own },
    ...(names.includes("distillation") && { teacher }),
  }
}

const stepLevel = new Set(
  "gigpo gigpo-roll gigpo-trinity gigpo-verl-agent gigpo-tree ecpo g2po hgpo reward-flow state-value step-ppo turn-ppo vine-ppo".split(
    " ",
  ),
)

/** Algorithms that compare or value single steps, and GRPO, which does not. Without those whose prompts or completions the maze's model cannot hold. */
export const stepAlgorithms = everyAlgorithm.filter(
  ({ name, set }) => name === "GRPO" || stepLevel.has(set["training.estimator.name"]),
)
