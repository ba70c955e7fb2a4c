import { GigpoError } from "../../util/errors.ts"
import type { EnvironmentEpisode, EpisodeContext, Observation, StepResult } from "../environment.ts"
import { Lifecycle } from "../lifecycle.ts"
import { successMetrics } from "../success.ts"
import { isRight, lastAnswer } from "./answer.ts"
import { informationOf, passagesText } from "./information.ts"
import type { SearchSettings } from "./options.ts"
import { isAnswer, queryOf } from "./projection.ts"
import type { SearchTask } from "./questions.ts"
import { type Retriever, RetrieverFailure } from "./retriever.ts"

type EpisodeOptions = Pick<SearchSettings, "topk" | "match" | "maxSteps" | "onRetrieverFailure">

/** Observation after an answer, and after a completion with neither a search nor an answer. */
const nothing: Observation = { text: "", anchor: "" }

export function startEpisode(
  task: SearchTask,
  retriever: Retriever,
  options: EpisodeOptions,
  { signal }: EpisodeContext,
): EnvironmentEpisode {
  const life = new Lifecycle("search", signal)
  checkTask(task)
  let conversation = ""
  let [steps, searches, failures] = [0, 0, 0]

  const find = async (query: string): Promise<string> => {
    searches++
    try {
      return passagesText(await retriever.retrieve(query, options.topk, signal))
    } catch (cause) {
      signal.throwIfAborted()
      if (!(cause instanceof RetrieverFailure)) throw cause
      failures++
      if (options.onRetrieverFailure === "report") return `The search failed: ${cause.reason}.`
      throw new GigpoError("ENVIRONMENT_FAILED", `search: ${cause.message}.`, { cause })
    }
  }

  return {
    first: { text: task.question, anchor: task.question },
    async step(action): Promise<StepResult> {
      life.check()
      conversation += action
      const terminated = isAnswer(action)
      const truncated = !terminated && ++steps >= options.maxSteps
      const ended = terminated || truncated
      if (ended) life.end()
      // A search in the last step is skipped, because its result would not be shown.
      const query = ended ? undefined : queryOf(action)
      const text = query === undefined ? "" : informationOf(await find(query))
      conversation += text
      const answer = ended ? lastAnswer(conversation) : undefined
      const right = answer !== undefined && isRight(answer, task.answers, options.match)
      return {
        observation: query === undefined ? nothing : { text, anchor: text },
        reward: right ? 1 : 0,
        terminated,
        truncated,
        metrics: { ...successMetrics(right, task.source), searches, retrieverFailures: failures },
      }
    },
    async [Symbol.asyncDispose]() {
      life.dispose()
    },
  }
}

function checkTask(task: Partial<SearchTask> | null | undefined): void {
  const { question, answers } = task ?? {}
  if (typeof question === "string" && Array.isArray(answers) && answers.every((answer) => typeof answer === "string"))
    return
  throw new GigpoError("BAD_ARGUMENT", "A search task needs question, a string, and answers, a list of strings.")
}
