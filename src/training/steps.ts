import type { BatchStep } from "../credit/batch.ts"
import { type Episode, type EpisodeStep, isScored } from "../rollout/episode.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { tokenTexts } from "../tokenizer/token-texts.ts"

/** One step of a finished episode, with what estimators ask of it. */
export interface CollectedStep extends BatchStep {
  /** Its group's place among the iteration's groups, and its episode's place in the group. */
  readonly task: number
  readonly episode: number
  readonly record: EpisodeStep
}

/**
 * The steps of all episodes but those that failed or were dropped, in the order of tasks, members and time.
 *
 * @param least scored episodes without which a group is left out (`rollout.minGroupSize`)
 */
export function collectSteps(groups: readonly (readonly Episode[])[], least = 1): CollectedStep[] {
  const collected: CollectedStep[] = []
  for (const { task, member, episode } of learnedEpisodes(groups, least)) {
    const { steps, outcome } = episode
    const next = nextAnchors(episode)
    for (const [index, record] of steps.entries()) {
      const { observation, reward, valid, conversation, agent } = record
      const ended = index + 1 === steps.length
      const nextAnchor = next[index]
      collected.push({
        task,
        episode: member,
        anchor: observation.anchor,
        reward,
        valid,
        length: record.reply.length,
        ...(nextAnchor !== undefined && { nextAnchor }),
        ...(ended && outcome === "terminated" && { terminated: true }),
        ...(ended && outcome !== "terminated" && { truncated: true }),
        ...(conversation !== undefined && { conversation }),
        ...(agent !== undefined && { agent }),
        record,
      })
    }
  }
  return collected
}

/** The same steps, with what each token adds to its reply's text. */
export function withTexts(steps: readonly CollectedStep[], tokenizer: ChatCodec): readonly CollectedStep[] {
  return steps.map((step) => ({ ...step, tokenTexts: tokenTexts(tokenizer, step.record.reply) }))
}

/** The episodes whose steps are learned from, in the order in which these are collected. */
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

/** What each step led to: what the same agent saw next in the same conversation; of the episode's last step, what was seen last. */
function nextAnchors({ steps, last }: Episode): (string | undefined)[] {
  const seen = new Map<unknown, Map<unknown, string | undefined>>()
  const next = new Array<string | undefined>(steps.length)
  for (let index = steps.length - 1; index >= 0; index--) {
    const { conversation, agent, observation } = steps[index]!
    const agents = seen.get(conversation) ?? new Map<unknown, string>()
    seen.set(conversation, agents)
    next[index] = agents.has(agent) ? agents.get(agent) : index + 1 === steps.length ? last?.anchor : undefined
    agents.set(agent, observation.anchor)
  }
  return next
}
