import type { Sampler } from "../engine/engine.ts"
import type { Sequence } from "../engine/sequence.ts"
import type { Environment } from "../environment/environment.ts"
import { rolloutDefaults } from "../rollout/options.ts"
import { rollout } from "../rollout/rollout.ts"
import { drawnTasks } from "../rollout/tasks.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { Failed, Invalid } from "../training/expert-episodes.ts"
import { environmentRows } from "../training/expert-rows.ts"
import { type DemonstrationSetup, playerOf } from "../training/player.ts"
import type { StageProgress } from "../training/progress.ts"
import { layOutSequences } from "../training/rows.ts"
import { collectSteps } from "../training/steps.ts"
import { GigpoError } from "../util/errors.ts"
import type { Random } from "../util/random.ts"
import { warner } from "../util/warn.ts"

interface ExpertRowsSetup<Task> extends DemonstrationSetup<Task> {
  readonly policy: Pick<Sampler, "vocabularySize" | "maxPositions">
  readonly tokenizer: ChatCodec
  readonly signal?: AbortSignal | undefined
  /** Called with the number of played episodes. */
  readonly onExpert?: ((progress: StageProgress) => void) | undefined
  /** Called with a warning about failed episodes. Default: a warning of Node.js. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Returns the steps of an expert on tasks of the training split, as sequences without advantages. */
export async function expertRows<Task>(
  setup: ExpertRowsSetup<Task>,
  tasks: number,
  random: Random,
): Promise<Sequence[]> {
  const { environment, policy, tokenizer, signal, onExpert, onWarning } = setup
  const played = environment as Environment<Task> // expertEpisodes checks its methods
  const ofEnvironment = { environment: played, tokenizer, tasks, random, signal, onExpert, onWarning }
  const rows =
    (setup.agent ?? setup.expert) ? await agentRows(setup, tasks, random) : await environmentRows(ofEnvironment)
  if (rows.length === 0)
    throw new GigpoError(
      "BAD_ENVIRONMENT",
      `The expert of ${environment.name} returned no completion in ${tasks} tasks.`,
    )
  const longest = rows.reduce((most, { tokens }) => Math.max(most, tokens.length), 0)
  if (longest > policy.maxPositions)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `A step of the expert has ${longest} tokens, but the model has ${policy.maxPositions} positions: raise maxPositions or shorten the prompt.`,
    )
  return rows
}

/** Calls of the agent with completions of the expert, recorded as in training, so that prompts are the same in both. */
async function agentRows<Task>(setup: ExpertRowsSetup<Task>, tasks: number, random: Random): Promise<Sequence[]> {
  const { environment, tokenizer, expert, signal, onExpert } = setup
  const onWarning = warner(setup.onWarning)
  if (typeof expert !== "function")
    throw new GigpoError(
      "BAD_ARGUMENT",
      "expert is missing: with an agent, give a function that completes its calls in place of the model.",
    )
  await using player = playerOf(setup)
  using drawn = drawnTasks(environment as Environment<Task>, "train", random.derive("tasks"))
  const { groups } = await rollout({
    ...rolloutDefaults,
    policy: { ...silent, vocabularySize: setup.policy.vocabularySize },
    tokenizer,
    agentLoop: player.agentLoop,
    tasks: drawn,
    groups: tasks,
    groupSize: 1,
    random: random.derive("agent"),
    maxPositions: mostPositions,
    signal,
    onEpisode: (done, total) => onExpert?.({ stage: "expert", done, total }),
  })
  const failed = new Failed()
  const episodes = groups.map(({ episodes }) => episodes)
  for (const [index, [episode]] of episodes.entries()) failed.count(index, episode!.error)
  failed.report(onWarning)
  const invalid = new Invalid()
  for (const { text, valid } of episodes.flat().flatMap(({ steps }) => steps)) invalid.count(valid, text)
  invalid.report(onWarning)
  return layOutSequences(collectSteps(episodes)).map(({ tokens, segments }) => ({
    tokens,
    segments: segments.map(({ start, length, task, constraint }) => ({
      ...{ start, length },
      ...(task !== undefined && { task }),
      ...(constraint !== undefined && { constraint }),
    })),
  }))
}

/** Limit of positions in the rollout, large enough that too long sequences are reported with their length. */
const mostPositions = 2 ** 24

/** Policy of the rollout, which is never called: the expert completes all calls. */
const silent = {
  maxPositions: mostPositions,
  deterministic: true,
  sample: () => Promise.reject(new GigpoError("INTERNAL", "An episode of an expert sampled from the model.")),
}
