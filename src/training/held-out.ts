import type { Sampler } from "../engine/engine.ts"
import type { OffersTasks } from "../environment/environment.ts"
import type { KeysOf } from "../options/arguments.ts"
import { checkSampler } from "../rollout/check-setup.ts"
import type { Group } from "../rollout/hooks.ts"
import type { Play } from "../rollout/play.ts"
import { type RolloutSetup, rollout } from "../rollout/rollout.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { type FailureReason, failuresOf, playerName } from "./failure-reasons.ts"
import { type AgentSetup, playerOf } from "./player.ts"
import type { Progress } from "./progress.ts"

/** Who plays held-out tasks, by its environment's own loop unless somebody else plays. */
export interface HeldOutSetup<Task = unknown> extends AgentSetup<Task> {
  readonly policy: Sampler
  readonly tokenizer: ChatCodec
  readonly environment: OffersTasks<Task>
  /** Plays the episodes in place of the package's own loop. */
  readonly play?: Play<Task> | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

const playerKeys: KeysOf<HeldOutSetup> = {
  policy: true,
  tokenizer: true,
  environment: true,
  play: true,
  agent: true,
  normalize: true,
  signal: true,
  onProgress: true,
}

/** The options that stand beside who plays. */
export function besidePlayer(setup: object): object {
  return Object.fromEntries(Object.entries(setup).filter(([key]) => !Object.hasOwn(playerKeys, key)))
}

type Played<Task> = Pick<RolloutSetup<Task>, "tasks" | "groups" | "groupSize" | "random" | "temperature"> &
  Pick<RolloutSetup<Task>, "concurrency" | "maxReplyTokens" | "maxSteps" | "environmentTimeout">

/** Plays tasks that are not learned from. */
export async function playHeldOut<Task>(
  setup: HeldOutSetup<Task>,
  played: Played<Task>,
): Promise<{ readonly groups: readonly Group<Task>[]; readonly failures?: readonly FailureReason[] }> {
  const { policy, tokenizer, signal, onProgress } = setup
  await using player = playerOf(setup)
  const { play } = player
  const environment = player.environment!
  checkSampler(policy, tokenizer)
  tokenizer.checkVocabulary?.(policy.vocabularySize)
  const { groups } = await rollout({
    ...played,
    policy,
    tokenizer,
    environment,
    play,
    maxPositions: policy.maxPositions,
    signal,
    onEpisode: (done, total) => onProgress?.({ stage: "evaluation", done, total }),
  })
  return { groups, ...failuresOf(groups, playerName({ play, environment })) }
}
