import { createHash } from "node:crypto"
import { checkMessages, checkParsed, environmentError, playing } from "../environment/contract.ts"
import type { Environment } from "../environment/environment.ts"
import { canonical } from "../json/canonical.ts"
import { Pace } from "../util/pace.ts"
import type { BenchmarkDigests } from "./evaluation-file.ts"
import { fixedCompletions, historyOf, type Play } from "./plays.ts"
import type { BenchmarkTask } from "./tasks.ts"

// Digests are SHA-256 over lines of JSON with sorted keys, so equal contents have equal digests on every machine.

async function digestOf(lines: Iterable<unknown>, signal?: AbortSignal): Promise<string> {
  const hash = createHash("sha256")
  const pace = new Pace(signal)
  for (const line of lines) {
    hash.update(`${canonical(line)}\n`)
    if (pace.due()) await pace.rest()
  }
  return hash.digest("hex")
}

export function tasksDigest(tasks: readonly BenchmarkTask[]): Promise<string> {
  return digestOf(tasks.map(({ key }) => key))
}

/** Digest of the tasks and of all responses of the environment in these plays. */
export async function environmentDigest(
  tasks: readonly BenchmarkTask[],
  plays: readonly Play[],
  signal?: AbortSignal,
): Promise<string> {
  const ofTasks = await tasksDigest(tasks)
  const lines = function* () {
    yield ofTasks
    for (const { task, turns, last } of plays) {
      yield [task.key]
      for (const { observation, choice, result } of turns) {
        const { reward, terminated, truncated, metrics = {} } = result
        yield [observation, choice.action, reward, terminated, truncated, metrics]
      }
      yield [last]
    }
  }
  return await digestOf(lines(), signal)
}

/** Digest of all messages that an agent would have received in these plays, and of the actions parsed from its completions. */
export async function promptDigest(
  environment: Environment,
  plays: readonly Play[],
  signal?: AbortSignal,
): Promise<string> {
  const contract = playing(environment.name)
  const read = (completion: string, turn: Play["turns"][number]) =>
    checkParsed(contract, "parse()", environment.parse(completion, turn.observation))
  const lines = function* () {
    for (const play of plays) {
      const history = historyOf(play)
      for (const [index, turn] of play.turns.entries()) {
        const { observation, choice } = turn
        yield checkMessages(contract, environment.prompt(play.task.task, history.slice(0, index), observation))
        yield [...(index === 0 ? fixedCompletions : []), choice.text].map((completion) => read(completion, turn))
      }
    }
  }
  try {
    return await digestOf(lines(), signal)
  } catch (cause) {
    signal?.throwIfAborted()
    throw environmentError(environment.name, cause)
  }
}

export async function benchmarkDigests(environment: string, prompt: string): Promise<BenchmarkDigests> {
  return { environment, prompt, benchmark: await digestOf([environment, prompt]) }
}
