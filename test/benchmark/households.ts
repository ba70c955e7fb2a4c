import type { Benchmark } from "../../src/benchmark/benchmark.ts"
import { type AlfworldOptions, alfworld } from "../../src/environment/alfworld/alfworld.ts"
import { taskTypes } from "../../src/environment/alfworld/generate/task-types.ts"
import type { HouseholdTask } from "../../src/environment/alfworld/generate/tasks.ts"
import type { Environment, Observation, PastStep, StepResult } from "../../src/environment/environment.ts"
import { Random } from "../../src/util/random.ts"

/** A benchmark of the first held-out households of each type of task, unchecked. */
export async function householdBenchmark(options: AlfworldOptions, each: number): Promise<Benchmark<HouseholdTask>> {
  const environment = (await alfworld(options)) as Environment<HouseholdTask>
  const tasks: { key: string; task: HouseholdTask }[] = []
  for (const task of environment.tasks("test", new Random(0))) {
    if (tasks.filter((one) => one.task.taskType === task.taskType).length < each)
      tasks.push({ key: `key-${task.seed}`, task })
    if (tasks.length === each * taskTypes.length) break
  }
  const digest = "0123456789abcdef".repeat(4)
  const digests = { environment: digest, prompt: digest, benchmark: digest }
  return { name: "households/few@1", tasks, digests, defaultPrompt: true, environment, options, replaced: [] }
}

/** Step of an episode: the command and its result. */
export interface Moment extends Partial<StepResult> {
  readonly command?: string
  readonly observation: Observation
}

/** Who plays: the environment's expert, or chance, which sometimes says what does nothing. */
export type Policy = "expert" | "random"

/** One episode, step by step, with a maximum number of steps. */
export async function playedEpisode<Task>(
  environment: Environment<Task>,
  task: Task,
  policy: Policy,
  random: Random,
  steps = Number.POSITIVE_INFINITY,
): Promise<Moment[]> {
  const context = { signal: new AbortController().signal, random }
  const episode = await environment.start(task, context)
  const expert = environment.expert!(task)
  const history: PastStep[] = []
  const moments: Moment[] = [{ observation: episode.first }]
  for (let step = 0; step < steps && !(moments.at(-1)!.terminated || moments.at(-1)!.truncated); step++) {
    const { observation } = moments.at(-1)!
    const commands = [...observation.actions!, "fly to the moon"]
    const completion =
      policy === "expert"
        ? expert.complete(observation, history)!
        : `<action>${commands[random.below(commands.length)]}</action>`
    const { action: command } = environment.parse(completion, observation)
    moments.push({ command, ...(await episode.step(command)) })
    history.push({ observation, completion, action: command })
  }
  return moments
}
