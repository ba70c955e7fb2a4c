import { editDistance } from "../util/edit-distance.ts"
import type { OptionFields } from "./table.ts"

/**
 * Options of TRL (GRPOConfig, SFTConfig, LoraConfig) and verl, and the keys that correspond to them here. docs/glossary.md explains them. Some are
 * also names of other options here, such as `beta` of a loss: a key alone means that of TRL.
 */
export const otherNames: Readonly<Record<string, string>> = {
  // iterations and updates
  max_steps: "training.iterations",
  total_training_steps: "training.iterations",
  total_epochs: "training.iterations",
  num_iterations: "training.epochs",
  ppo_epochs: "training.epochs",
  num_train_epochs: "sft.epochs",
  batch_size: "training.stepsPerUpdate",
  per_device_train_batch_size: "training.stepsPerUpdate",
  gradient_accumulation_steps: "training.stepsPerUpdate",
  ppo_mini_batch_size: "training.stepsPerUpdate",
  ppo_micro_batch_size: "microBatchTokens",
  ppo_micro_batch_size_per_gpu: "microBatchTokens",
  one_step_off_policy: "training.maxStaleness",
  max_head_offpolicyness: "training.maxStaleness",
  save_steps: "training.checkpointEvery",
  save_freq: "training.checkpointEvery",
  save_total_limit: "training.keepCheckpoints",
  eval_steps: "training.evaluation.every",
  test_freq: "training.evaluation.every",
  gradient_checkpointing: "recompute",
  enable_gradient_checkpointing: "recompute",
  // rollout
  train_batch_size: "training.groups",
  num_generations: "training.groupSize",
  "rollout.n": "training.groupSize",
  max_completion_length: "training.rollout.maxCompletionTokens",
  max_response_length: "training.rollout.maxCompletionTokens",
  max_new_tokens: "training.rollout.maxCompletionTokens",
  max_tokens: "training.rollout.maxCompletionTokens",
  // advantages
  adv_estimator: "training.estimator",
  scale_rewards: "training.estimator.normalization",
  norm_adv_by_std_in_grpo: "training.estimator.normalization",
  lam: "training.estimator.ppo.lambda",
  // loss
  beta: "training.loss.klWeight",
  kl_coef: "training.loss.klWeight",
  kl_loss_coef: "training.loss.klWeight",
  kl_loss_type: "training.loss.klEstimator",
  use_kl_in_reward: "training.loss.klPlacement",
  kl_ctrl: "training.loss.adaptiveKl",
  entropy_coeff: "training.loss.entropyWeight",
  epsilon: "training.loss.clipLow",
  epsilon_high: "training.loss.clipHigh",
  clip_ratio: "training.loss.clipLow",
  clip_ratio_low: "training.loss.clipLow",
  clip_ratio_high: "training.loss.clipHigh",
  delta: "training.loss.clipDual",
  clip_ratio_c: "training.loss.clipDual",
  loss_type: "training.loss.aggregation",
  loss_agg_mode: "training.loss.aggregation",
  importance_sampling_level: "training.loss.importanceSamplingLevel",
  vllm_importance_sampling_correction: "training.rolloutCorrection",
  rollout_correction: "training.rolloutCorrection",
  // optimizer
  learning_rate: "training.optimizer.learningRate",
  lr: "training.optimizer.learningRate",
  lr_scheduler_type: "training.optimizer.schedule",
  warmup_steps: "training.optimizer.warmup",
  lr_warmup_steps: "training.optimizer.warmup",
  weight_decay: "training.optimizer.weightDecay",
  max_grad_norm: "training.optimizer.maxGradientNorm",
  grad_clip: "training.optimizer.maxGradientNorm",
  // adapter
  peft_config: "lora",
  r: "lora.rank",
  rank: "lora.rank",
  lora_r: "lora.rank",
  lora_rank: "lora.rank",
  lora_alpha: "lora.alpha",
  target_modules: "lora.targetModules",
}

/**
 * Returns the key that `path` probably is a misspelling of: the key whose last name has the smallest edit distance, with 1 added for a
 * different group. undefined if no key is close.
 */
export function nearestKey(
  path: readonly string[],
  keys: readonly (readonly string[])[],
): readonly string[] | undefined {
  const last = plain(path.at(-1) ?? "")
  if (last.length > longestName) return undefined
  let best: { key: readonly string[]; distance: number } | undefined
  for (const key of keys) {
    const elsewhere = key.slice(0, -1).join(".") === path.slice(0, -1).join(".") ? 0 : 1
    const distance = editDistance(last, plain(key.at(-1)!)) + elsewhere
    if (!best || distance < best.distance) best = { key, distance }
  }
  return best && best.distance <= Math.max(1, Math.ceil(last.length / 3)) ? best.key : undefined
}

/** Longest name in characters that is searched for: the search time grows with the length. */
const longestName = 200

/** Returns the name that `name` probably is a misspelling of. undefined if no name is close. */
export function nearestName(name: string, names: readonly string[]): string | undefined {
  return nearestKey(
    [name],
    names.map((one) => [one]),
  )?.[0]
}

/**
 * Returns the only option whose description contains every word of a name: "stepWeight" in "Weight ω of the step advantage". undefined for
 * a name of one word.
 */
export function describedBy(name: string, fields: OptionFields): string | undefined {
  if (name.length > longestName) return undefined
  const words = wordsOf(name.replaceAll(/(?=\p{Lu})/gu, " "))
  if (words.length < 2) return undefined
  const found = Object.keys(fields).filter((key) => {
    const said = new Set(wordsOf(fields[key]!.help))
    return words.every((word) => said.has(word))
  })
  return found.length === 1 ? found[0] : undefined
}

function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/\p{L}+/gu) ?? []
}

/** Name in lower case without hyphens and underscores, so that maxSteps, max_steps and max-steps are equal. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, "")
}

/**
 * Returns the one of `keys` that corresponds to a name of TRL or verl: in the group that the path begins with if it has that option, else where the
 * table says. Keys may begin below a group of the table. undefined for other names. Groups above the name do not count, except that of "rollout.n".
 */
export function otherKey(path: readonly string[], keys: readonly (readonly string[])[]): readonly string[] | undefined {
  const name = [path.slice(-2).join("."), path.at(-1)!].find((name) => Object.hasOwn(otherNames, name))
  if (name === undefined) return undefined
  const meant = otherNames[name]!.split(".")
  const found = [[path[0]!, ...meant.slice(1)], meant].map((place) => {
    const text = `.${place.join(".")}`
    return keys.filter((key) => text.endsWith(`.${key.join(".")}`)).sort((a, b) => b.length - a.length)[0]
  })
  return path.length > 1 ? (found[0] ?? found[1]) : found[1]
}
