import { environmentError } from "../environment/contract.ts"
import { startEpisode } from "./environment-episode.ts"
import { type Episode, type EpisodeStep, totalReward } from "./episode.ts"
import type { ExpertSetup } from "./expert.ts"
import { type ActionSelector, type Choice, playTurns } from "./turns.ts"

const none = { prompt: new Int32Array(0), completion: new Int32Array(0), logProbs: new Float32Array(0) }

/**
 * Plays one episode with an action selector instead of a model, so without tokens. Where the selector stops, the outcome is `excluded`. Errors of
 * the environment are outcomes. Rejects only for an abort of the signal.
 */
export async function playBy<Task>(
  setup: ExpertSetup<Task>,
  choose: ActionSelector<Choice, "stopped">,
): Promise<Episode> {
  const { environment, maxSteps, signal } = setup
  const steps: EpisodeStep[] = []
  const end = (how: Pick<Episode, "outcome" | "last" | "error">): Episode => ({
    ...{ steps, return: totalReward(steps), metrics: steps.at(-1)?.metrics ?? {} },
    ...how,
  })
  try {
    await using episode = await startEpisode(setup)
    const turns = playTurns(episode, choose, { maxTurns: maxSteps })
    for (;;) {
      const { done, value } = await turns.next()
      if (done) return end({ outcome: value.outcome === "stopped" ? "excluded" : value.outcome, last: value.last })
      const { observation, choice, result } = value
      const { text, action, valid } = choice
      const { reward, metrics } = result
      steps.push({
        ...none,
        ...{ observation, text, action, valid, reward, finishReason: "stop" },
        ...(metrics && { metrics: { ...metrics } }),
      })
    }
  } catch (error) {
    signal?.throwIfAborted()
    return end({ outcome: "failed", error: environmentError(environment.name, error) })
  }
}
