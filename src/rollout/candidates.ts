import { callHook } from "./call-hook.ts"
import type { EpisodeSetup, ScoredCandidate } from "./episode.ts"
import { orEndRollout } from "./faults.ts"
import { checkChoice, checkScore } from "./hook-answers.ts"
import type { CandidateSet } from "./hooks.ts"
import { type PolicyChoice, recordedCompletion } from "./policy-choice.ts"

/** Scores the candidates of one prompt and chooses one of them. `place` is that of the turn, for random numbers. */
export async function chooseCandidate<Task>(
  setup: EpisodeSetup<Task>,
  { score, choose = oneOfTheBest }: CandidateSet,
  choices: readonly PolicyChoice[],
  place: readonly number[],
): Promise<PolicyChoice> {
  const ask = <Answer>(key: string, call: Parameters<typeof callHook<Answer>>[3], check: (answer: Answer) => Answer) =>
    orEndRollout(callHook("hooks.candidates", setup, [key, ...place], call, check))
  const all: ScoredCandidate[] = []
  for (const choice of choices) {
    const { finishReason: _, ...candidate } = recordedCompletion(choice)
    all.push({ ...candidate, score: await ask("score", () => score(candidate), checkScore) })
  }
  const chosen = await ask("choose", ({ random }) => choose(all, random), checkChoice(all.length))
  return {
    ...choices[chosen]!,
    score: all[chosen]!.score,
    candidates: all.filter((_, at) => at !== chosen),
  }
}

const oneOfTheBest: NonNullable<CandidateSet["choose"]> = (candidates, random) => {
  const most = Math.max(...candidates.map(({ score }) => score))
  const best = [...candidates.keys()].filter((at) => candidates[at]!.score === most)
  return best[random.below(best.length)]!
}
