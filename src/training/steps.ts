import type { BatchStep } from "../credit/batch.ts"
import { type Episode, type EpisodeStep, isScored } from "../rollout/episode.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { tokenTexts } from "../tokenizer/token-texts.ts"
import { atOnce, itemsOfPiece, mapInPieces, type Pieces } from "../util/pace.ts"

/** Step of a finished episode, as `collectSteps` returns it and `toBatch` takes it. */
export interface CollectedStep extends BatchStep {
  /** Index of the group in the iteration. */
  readonly task: number
  /** Index of the episode in the group. */
  readonly episode: number
  /** Step as the rollout recorded it. */
  readonly record: EpisodeStep
  /** Log-probabilities of the trainer at the weights of the rollout, [tokens]; only with `oldLogProbs: recomputed`. */
  readonly trainerLogProbs?: Float32Array
}

/**
 * Returns the steps of all episodes that can be trained on, in the order of tasks, members and time. Failed and excluded episodes are left
 * out.
 *
 * @param minGroupSize - minimum number of scored episodes of a group (`rollout.minGroupSize`). Smaller groups are left out. Default 1.
 */
export function collectSteps(groups: readonly (readonly Episode[])[], minGroupSize = 1): CollectedStep[] {
  return atOnce(collectInPieces(groups, minGroupSize))
}

/** `collectSteps` for long rollouts, which pauses between steps. */
export function* collectInPieces(groups: readonly (readonly Episode[])[], minGroupSize = 1): Pieces<CollectedStep[]> {
  const collected: CollectedStep[] = []
  for (const { task, member, episode } of learnedEpisodes(groups, minGroupSize)) {
    const { steps, outcome } = episode
    const next = yield* nextAnchors(episode)
    for (let index = 0; index < steps.length; index++) {
      if (collected.length % itemsOfPiece === 0) yield
      const record = steps[index]!
      const { observation, reward, valid, conversation, agent } = record
      const { anchor } = observation
      const { length } = record.completion
      const step: { -readonly [Name in keyof CollectedStep]: CollectedStep[Name] } = {
        task,
        episode: member,
        anchor,
        reward,
        valid,
        length,
        record,
      }
      if (next[index] !== undefined) step.nextAnchor = next[index]
      if (index + 1 === steps.length) step[outcome === "terminated" ? "terminated" : "truncated"] = true
      if (conversation !== undefined) step.conversation = conversation
      if (agent !== undefined) step.agent = agent
      collected.push(step)
    }
  }
  return collected
}

/** Returns the steps with the text of each token of their completions, in pieces. */
export function withTexts(steps: readonly CollectedStep[], tokenizer: ChatCodec): Pieces<readonly CollectedStep[]> {
  return mapInPieces(steps, (step) => ({ ...step, tokenTexts: tokenTexts(tokenizer, step.record.completion) }))
}

/** Yields the episodes that are trained on, in the order in which their steps are collected. */
export function* learnedEpisodes(
  groups: readonly (readonly Episode[])[],
  least: number,
): Generator<{ readonly task: number; readonly member: number; readonly episode: Episode }, void, undefined> {
  for (const [task, group] of groups.entries()) {
    if (isTooSmall(group, least)) continue
    for (const [member, episode] of group.entries()) if (isScored(episode)) yield { task, member, episode }
  }
}

export function isTooSmall(group: readonly Episode[], least: number): boolean {
  return group.filter(isScored).length < least
}

/**
 * Anchor state that each step led to: that of the next step with the same agent and conversation. The last step of the episode has the anchor
 * of the last observation if there is no such step; any other step without one has undefined.
 */
function* nextAnchors({ steps, last }: Episode): Pieces<(string | undefined)[]> {
  const seen = new Map<unknown, Map<unknown, string | undefined>>()
  const next = new Array<string | undefined>(steps.length)
  for (let index = steps.length - 1; index >= 0; index--) {
    if (index % itemsOfPiece === itemsOfPiece - 1) yield
    const { conversation, agent, observation } = steps[index]!
    const agents = seen.get(conversation) ?? new Map<unknown, string>()
    seen.set(conversation, agents)
    next[index] = agents.has(agent) ? agents.get(agent) : index + 1 === steps.length ? last?.anchor : undefined
    agents.set(agent, observation.anchor)
  }
  return next
}
