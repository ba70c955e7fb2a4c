import { addToPrompt } from "../environment/add-to-prompt.ts"
import type { Message } from "../environment/environment.ts"
import { unlessAborted } from "../util/linked-abort.ts"
import type { Fork, Origin } from "./branches.ts"
import { callHook } from "./call-hook.ts"
import { chooseCandidate } from "./candidates.ts"
import { decodeCompletion, encodePrompt } from "./codec.ts"
import { completionConstraint } from "./constrain.ts"
import { drawCompletion } from "./draw-completion.ts"
import { EndOfEpisode } from "./end-of-episode.ts"
import type { EpisodeSetup } from "./episode.ts"
import { orEndRollout } from "./faults.ts"
import { checkCandidates, checkDecision } from "./hook-answers.ts"
import type { SampledCompletion, TurnContext } from "./hooks.ts"
import { rolloutDefaults } from "./options.ts"
import type { PolicyChoice } from "./policy-choice.ts"
import type { ActionSelector, SelectionContext } from "./turns.ts"

export interface CompletionsCourse {
  /** Hint that is added to every prompt. */
  readonly hint?: string | undefined
  /** Whether choices contain the prompt without the hint. */
  readonly offPolicy?: boolean | undefined
  /** Origin of a branch. */
  readonly origin?: Origin | undefined
  /** Called for each decision to branch. */
  readonly fork?: ((at: Pick<Fork, "step" | "more" | "now" | "draw">) => void) | undefined
}

/** Selects completions of the policy, until prompt and completion no longer fit the model. */
export function policyCompletions<Task>(
  setup: EpisodeSetup<Task>,
  { hint, offPolicy = false, origin, fork }: CompletionsCourse = {},
): ActionSelector<PolicyChoice, "overflow"> {
  const { policy, tokenizer, task, signal, hooks, maxResamples: resamples = rolloutDefaults.maxResamples } = setup
  const { vocabularySize } = policy
  const completions = (origin?.turns ?? []).flatMap(({ choice: { completion } }) => completion ?? [])
  const branchedAt = origin && completions.length

  /** Prompt with a hint and the context of its turn; undefined if prompt and completion would not fit. */
  const show = async (situation: SelectionContext, rendered: readonly Message[], hint: string | undefined) => {
    const messages = hint === undefined ? rendered : addToPrompt(rendered, hint)
    const prompt = await encodePrompt(tokenizer, messages, vocabularySize)
    if (prompt.tokens.length + setup.maxCompletionTokens > setup.maxPositions) return undefined
    const { index, now: observation, history } = situation
    const known = { task, index, observation, history: [...history], completions: completions.slice(0, index) }
    return { prompt, turn: { ...known, messages, tokenizer, vocabularySize } satisfies TurnContext<Task> }
  }

  return async (situation) => {
    const { index, now, parse } = situation
    const rendered = await orOverflow(() => situation.messages())
    if (rendered === "overflow") return rendered
    const first = await show(situation, rendered, hint)
    if (!first) return "overflow"
    const constraint = setup.constrained ? completionConstraint(setup, now) : undefined
    const request =
      hooks?.candidates &&
      callHook(
        "hooks.candidates",
        setup,
        ["candidates", index],
        (to) => hooks.candidates!(first.turn, to),
        checkCandidates,
      )
    const candidates = request && (await orEndRollout(request))
    const bare = offPolicy ? await encodePrompt(tokenizer, rendered, vocabularySize) : undefined
    let shown = first
    for (let attempt = 0; ; attempt++) {
      const { prompt, turn } = shown
      const read = async (completion: SampledCompletion): Promise<PolicyChoice> => {
        const text = decodeCompletion(tokenizer, completion.tokens)
        return { ...(await parse(text)), text, prompt: bare ?? prompt, completion, ...(constraint && { constraint }) }
      }
      const draw = async (candidate: number): Promise<SampledCompletion> =>
        origin?.first && index === branchedAt && attempt === 0 && candidate === 0
          ? await unlessAborted(signal, () => origin.first!)
          : await drawCompletion(setup, turn, { prompt, constraint }, attempt, candidate)
      const sampled = await Promise.all(Array.from({ length: candidates?.count ?? 1 }, (_, at) => draw(at)))
      const choices: PolicyChoice[] = []
      for (const completion of sampled) choices.push(await read(completion))
      const choice = candidates ? await chooseCandidate(setup, candidates, choices, [index, attempt]) : choices[0]!
      const { completion, text, action, valid } = choice
      completions[index] = completion
      if (!hooks?.onTurn) return choice
      const sampledTurn = { ...turn, attempt, completion, text, parsed: { action, valid } }
      const place = ["turn", index, attempt]
      const decided = callHook("hooks.onTurn", setup, place, (to) => hooks.onTurn!(sampledTurn, to), checkDecision)
      const decision = await orEndRollout(decided)
      if (decision.kind === "resample" && attempt < resamples) {
        const again = decision.hint === undefined ? shown : await show(situation, rendered, decision.hint)
        if (again) {
          shown = again
          continue
        }
      }
      if (decision.kind === "branch" && index !== branchedAt)
        fork?.({
          step: index,
          more: decision.branchingFactor - 1,
          now,
          draw: (random, signal) =>
            drawCompletion({ ...setup, random, signal }, first.turn, { prompt: first.prompt, constraint }),
        })
      return choice
    }
  }
}

/** Renders the prompt; "overflow" where a call of a memory does not fit the model. */
async function orOverflow(render: () => Promise<readonly Message[]>): Promise<readonly Message[] | "overflow"> {
  try {
    return await render()
  } catch (error) {
    if (error instanceof EndOfEpisode) return "overflow"
    throw error
  }
}
