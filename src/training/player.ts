import type { Agent, AgentExpert, AgentOptions } from "../agents/agent.ts"
import type { Gateway } from "../agents/gateway.ts"
import type { Environment, OffersTasks } from "../environment/environment.ts"
import type { AgentLoop } from "../rollout/play.ts"
import { GigpoError } from "../util/errors.ts"

/** Somebody's agent, that plays what an environment, or whoever has tasks, offers. */
export interface AgentSetup<Task> extends AgentOptions {
  readonly agent?: Agent<Task> | undefined
  readonly environment?: OffersTasks<Task> | undefined
}

/** Who is learned from: the environment's own expert, or with an agent one that speaks to it in the model's place. */
export interface TeacherSetup<Task> extends AgentSetup<Task> {
  readonly environment: OffersTasks<Task>
  readonly expert?: AgentExpert<Task> | undefined
}

/** Who plays, where an agent may. Disposed of when the work is over. */
export function playerOf<Task>({
  agent,
  normalize,
  environment,
  play,
  expert,
}: AgentSetup<Task> & Pick<TeacherSetup<Task>, "expert"> & { readonly play?: AgentLoop<Task> | undefined }): {
  readonly environment: Environment<Task> | undefined
  readonly play: AgentLoop<Task> | undefined
} & AsyncDisposable {
  let gateway: Promise<Gateway> | undefined
  let playing: Promise<AgentLoop<Task>> | undefined
  const player = {
    environment: environment as Environment<Task> | undefined, // what is missing of it nobody asks for where an agent plays
    play,
    [Symbol.asyncDispose]: async () => await (await gateway?.catch(() => undefined))?.[Symbol.asyncDispose](),
  }
  if (normalize !== undefined && typeof normalize !== "function")
    throw bad("normalize must be a function from text to text")
  if (agent === undefined && expert !== undefined) throw bad("expert speaks to an agent: give that, too")
  if (agent === undefined) {
    if (normalize !== undefined)
      throw bad("normalize is for agents, and none is given; environments give anchors themselves")
    return player
  }
  if (typeof agent !== "function") throw bad("agent must be a function that plays an episode")
  if (play !== undefined) throw bad("agent and play are both given; one of them plays")
  const calling: AgentLoop<Task> = async (context) => {
    // Loaded here: most trainings have no agent, and need no server.
    gateway ??= import("../agents/gateway.ts").then(({ openGateway }) => openGateway())
    playing ??= Promise.all([import("../agents/agent.ts"), gateway]).then(([{ agentLoop }, opened]) =>
      agentLoop(agent, opened, { normalize, expert }),
    )
    return await (await playing)(context)
  }
  return { ...player, play: calling }
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${message}.`)
}
