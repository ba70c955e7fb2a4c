import { inspect } from "node:util"
import type { Contract } from "../environment/contract.ts"
import { unknownKey } from "../options/unknown-key.ts"
import { GigpoError } from "../util/errors.ts"
import { checkMeasured, checkStep, type StepLimits } from "./check-step.ts"
import { type Episode, outcomes, totalReward } from "./episode.ts"
import type { CandidateSet, EpisodeStart, Group, TurnDecision } from "./hooks.ts"

// Checks of the results of hooks.

const startKeys: Record<keyof EpisodeStart, true> = { maxSteps: true, replay: true, hint: true, offPolicy: true }

export function checkStart(start: EpisodeStart | undefined, hook = "hooks.start"): EpisodeStart {
  if (start === undefined) return {}
  if (typeof start !== "object" || start === null)
    throw wrong(hook, `gave ${inspect(start)}; give an object with maxSteps, replay or hint, or undefined`)
  const unknown = unknownKey(start, startKeys)
  if (unknown) throw wrong(hook, `gave an object in which ${unknown}`)
  const { maxSteps, replay, hint, offPolicy } = start
  if (maxSteps !== undefined && !(Number.isSafeInteger(maxSteps) && maxSteps >= 1))
    throw wrong(hook, `gave maxSteps as ${inspect(maxSteps)}; it must be an integer of at least 1`)
  if (replay !== undefined && !(Array.isArray(replay) && replay.every((action) => typeof action === "string")))
    throw wrong(hook, "gave a replay that is not a list of actions, each a string")
  if (hint !== undefined && typeof hint !== "string")
    throw wrong(hook, `gave the hint ${inspect(hint)}; it must be a string`)
  if (offPolicy !== undefined && typeof offPolicy !== "boolean")
    throw wrong(hook, `gave offPolicy as ${inspect(offPolicy)}; it must be true or false`)
  return start
}

/** Returns the episodes of a group after `hooks.guide`: the returned ones, or those of the group. */
export function checkGuided({ episodes, index }: Group, guided: readonly Episode[] | undefined): readonly Episode[] {
  if (guided === undefined) return episodes
  if (Array.isArray(guided) && guided.length > 0 && guided.every((one) => Array.isArray(one?.steps))) return guided
  throw wrong("hooks.guide", `gave ${inspect(guided, { depth: 0 })} for task ${index}; give episodes, or undefined`)
}

export function checkDecision(decision: TurnDecision): TurnDecision {
  const { kind, hint, branchingFactor } = (decision ?? {}) as {
    kind?: string
    hint?: unknown
    branchingFactor?: unknown
  }
  if (kind === "accept") return decision
  if (kind === "resample" && (hint === undefined || typeof hint === "string")) return decision
  if (kind === "branch" && Number.isSafeInteger(branchingFactor) && (branchingFactor as number) >= 1) return decision
  throw wrong(
    "hooks.onTurn",
    `decided ${inspect(decision)}; give { kind: "accept" }, { kind: "resample" }, with a hint or without, or ` +
      '{ kind: "branch", branchingFactor: 2 } or more',
  )
}

export function checkCandidates(candidates: CandidateSet | undefined): CandidateSet | undefined {
  if (candidates === undefined) return undefined
  const { count, score, choose } = candidates ?? {}
  if (Number.isSafeInteger(count) && count >= 1 && typeof score === "function" && isFunction(choose)) return candidates
  throw wrong("hooks.candidates", `gave ${inspect(candidates)}; give { count, score, choose? }, or undefined`)
}

export function checkScore(score: number): number {
  if (Number.isFinite(score)) return score
  throw wrong("hooks.candidates", `scored a candidate ${inspect(score)}; give a finite number`)
}

export function checkChoice(count: number): (chosen: number) => number {
  return (chosen) => {
    if (Number.isSafeInteger(chosen) && chosen >= 0 && chosen < count) return chosen
    throw wrong("hooks.candidates", `chose ${inspect(chosen)}; give the number of a candidate, 0 to ${count - 1}`)
  }
}

export function checkKeep(keep: boolean): boolean {
  if (typeof keep === "boolean") return keep
  throw wrong("hooks.keep", `gave ${inspect(keep)}; it must give true or false`)
}

/** Checks the episodes that `hooks.score` returned, and computes their returns from the rewards. */
export function checkScored(
  { episodes, index }: Group,
  scored: readonly Episode[],
  limits: StepLimits,
): readonly Episode[] {
  if (!Array.isArray(scored) || scored.length !== episodes.length) {
    const found = Array.isArray(scored) ? `${scored.length} episodes` : inspect(scored, { depth: 0 })
    throw wrong("hooks.score", `gave ${found} for task ${index}; give all ${episodes.length}, in their order`)
  }
  return episodes.map(({ steps }, member) => {
    const episode: Episode = scored[member]
    const broken = (rule: string) => wrong("hooks.score", `gave a bad episode ${member} for task ${index}: ${rule}`)
    if (!Array.isArray(episode?.steps) || episode.steps.length !== steps.length)
      throw broken(`it must have as many steps as before, which were ${steps.length}`)
    if (!outcomes.includes(episode.outcome))
      throw broken(`its outcome is ${inspect(episode.outcome)}; it must be one of ${outcomes.join(", ")}`)
    const contract: Contract = { strict: false, broken }
    checkMeasured(contract, episode.metrics)
    for (const step of episode.steps) checkStep(contract, step, limits)
    return { ...episode, return: totalReward(episode.steps) }
  })
}

function wrong(name: string, rule: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${name} ${rule}.`)
}

function isFunction(value: unknown): boolean {
  return value === undefined || typeof value === "function"
}
