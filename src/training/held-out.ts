import { unchanged } from "../engine/claims.ts"
import type { Sampler } from "../engine/engine.ts"
import type { TaskProvider } from "../environment/environment.ts"
import type { KeysOf } from "../options/arguments.ts"
import { checkSampler } from "../rollout/check-setup.ts"
import type { Group } from "../rollout/hooks.ts"
import type { AgentLoop } from "../rollout/play.ts"
import { type RolloutSetup, rollout } from "../rollout/rollout.ts"
import { settleDate } from "../runs/date.ts"
import { type FailureReason, failuresOf, playerName } from "../runs/failure-reasons.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { type AgentSetup, playerOf } from "./player.ts"
import type { StageProgress } from "./progress.ts"

/** Arguments of an evaluation: policy, environment and, optionally, an agent. */
export interface HeldOutSetup<Task = unknown> extends AgentSetup<Task> {
  /** Model that is evaluated. */
  readonly policy: Sampler
  /** Tokenizer of the model. */
  readonly tokenizer: ChatCodec
  /** Environment, or for an agent the source of tasks. Its held-out split is used. */
  readonly environment: TaskProvider<Task>
  /** Agent loop that plays the episodes instead of the built-in loop. */
  readonly agentLoop?: AgentLoop<Task> | undefined
  /** Signal that aborts the evaluation. */
  readonly signal?: AbortSignal | undefined
  /** Called with the number of finished episodes. */
  readonly onProgress?: ((progress: StageProgress) => void) | undefined
}

const playerKeys: KeysOf<HeldOutSetup> = {
  policy: true,
  tokenizer: true,
  environment: true,
  agentLoop: true,
  agent: true,
  normalize: true,
  signal: true,
  onProgress: true,
}

/** Returns the options of an evaluation, without the keys of `HeldOutSetup`. */
export function besidePlayer(setup: object): object {
  return Object.fromEntries(Object.entries(setup).filter(([key]) => !Object.hasOwn(playerKeys, key)))
}

type Played<Task> = Pick<RolloutSetup<Task>, "tasks" | "groups" | "groupSize" | "random" | "temperature"> &
  Pick<RolloutSetup<Task>, "concurrency" | "maxCompletionTokens" | "maxSteps" | "environmentTimeout">

interface HeldOut<Task> {
  readonly groups: readonly Group<Task>[]
  readonly failures?: readonly FailureReason[]
}

/**
 * Plays tasks without training. The weights must not change meanwhile.
 *
 * @param call - name of the public function, for messages.
 * @throws GigpoError `POLICY_BUSY` if the policy is being trained or its training continues meanwhile.
 */
export async function playHeldOut<Task>(
  call: string,
  setup: HeldOutSetup<Task>,
  played: Played<Task>,
): Promise<HeldOut<Task>> {
  return await unchanged(setup.policy, call, setup.signal, (signal) => playTasks({ ...setup, signal }, played))
}

/** Plays tasks with a policy whose weights the caller keeps unchanged. */
export async function playTasks<Task>(setup: HeldOutSetup<Task>, played: Played<Task>): Promise<HeldOut<Task>> {
  const { policy, tokenizer, signal, onProgress } = setup
  checkSampler(policy, tokenizer)
  await using player = playerOf(setup)
  const { agentLoop } = player
  const environment = player.environment!
  tokenizer.checkVocabulary?.(policy.vocabularySize)
  settleDate(tokenizer)
  const { groups } = await rollout({
    ...played,
    policy,
    tokenizer,
    environment,
    agentLoop,
    maxPositions: policy.maxPositions,
    signal,
    onEpisode: (done, total) => onProgress?.({ stage: "evaluation", done, total }),
  })
  return { groups, ...failuresOf(groups, playerName({ agentLoop, environment })) }
}
