import { integer, oneOf } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import { around } from "./around.ts"
import type {
  Environment,
  EnvironmentEpisode,
  Message,
  Observation,
  ParsedAction,
  PastStep,
  StepResult,
} from "./environment.ts"
import { beside } from "./picture.ts"

/** Options of `parallelCopies`. */
export const parallelFields = {
  copies: integer(4, "Number of copies of the environment in each episode.", { min: 2 }),
  success: oneOf("any", ["any", "all"], "Whether any or all copies must succeed for the episode to succeed."),
  reward: oneOf(
    "max",
    ["max", "mean"],
    "Reward of a step: the largest reward of the copies that acted, or the mean over all copies.",
  ),
  maxSteps: integer(
    50,
    "Maximum number of steps of an episode. The steps in which a copy is idle count too, unlike in the copy's own limit.",
    { min: 1 },
  ),
  episodeEnd: oneOf(
    "first-success",
    ["first-success", "last-copy"],
    "End of the episode: with the first copy that succeeds, or with the last copy. Either way it ends when all copies have ended.",
  ),
}

/** Options of `parallelCopies`. */
export type ParallelOptions = OptionsOf<typeof parallelFields>

/** Observation with that of each copy; undefined for copies whose episode has ended. */
interface ParallelObservation extends Observation {
  readonly copies: readonly (Observation | undefined)[]
}

/**
 * Wraps an environment so that one agent acts in several copies at each step (DPEPO, arXiv 2604.24320, which uses 4 copies).
 *
 * A completion has one part per copy: `<env1>…</env1>`, `<env2>…</env2>` and so on. The action has one line per copy, as the estimator
 * `dpepo` reads it. The line is empty for a copy that has ended or has no part in the completion; such a copy is idle in this step. As in
 * the authors' code, the reward is the largest of the copies that acted, the first success ends the episode, and all steps count for its
 * limit. A copy succeeds with the metric `success`, or, in an environment without this metric, when it terminates with a positive reward.
 *
 * Our interpretation: a completion without a part for each running copy counts as invalid. The anchor combines the anchors of all copies.
 * Metrics are means over the copies, except `success`. The prompt contains each copy's prompt under its number.
 *
 * @throws BAD_ARGUMENT for an unknown or invalid option
 */
export function parallelCopies<Task>(environment: Environment<Task>, options: ParallelOptions = {}): Environment<Task> {
  const { copies: count, ...rules } = readOptions("parallelCopies", options, parallelFields)
  const numbers = Array.from({ length: count }, (_, e) => e)
  return {
    ...around(environment),
    async start(task, { signal, random }) {
      const starting = numbers.map((e) => environment.start(task, { signal, random: random.derive("copy", e) }))
      const started = await Promise.allSettled(starting)
      const episodes = started.flatMap((one) => (one.status === "fulfilled" ? one.value : []))
      const dispose = async () => void (await Promise.all(episodes.map(disposeOf)))
      const failed = started.find((one) => one.status === "rejected")
      if (failed) {
        await dispose()
        throw failed.reason
      }
      return { ...running(episodes, rules, signal), [Symbol.asyncDispose]: dispose }
    },
    prompt(task, history, now) {
      const { copies } = now as ParallelObservation
      const shown = numbers.flatMap((e): Message[][] =>
        copies[e] ? [environment.prompt(task, historyOf(history, e), copies[e])] : [],
      )
      const system = shown[0]!.filter(({ role }) => role === "system")
      const users = shown.map((messages) => messages.filter(({ role }) => role !== "system"))
      const images = users.flat().flatMap(({ images = [] }) => images)
      const live = numbers.filter((e) => copies[e])
      const parts = users.map((messages, at) => {
        const texts = messages.map(({ content, images: own }) => (own ? content : beside({ images }, content)))
        return `# Environment ${live[at]! + 1}\n${texts.join("\n\n")}`
      })
      const tags = live.map((e) => `<env${e + 1}>…</env${e + 1}>`).join(" ")
      const ask = `You act in ${live.length} environments at once. Reply to each in a part of its own: ${tags}`
      const content = [...parts, ask].join("\n\n")
      return [...system, { role: "user", content, ...(images.length > 0 && { images }) }]
    },
    parse(completion, now) {
      const parsed = (now as ParallelObservation).copies.map((copy, e): ParsedAction => {
        if (!copy) return { action: "", valid: true }
        const part = partOf(completion, e)
        return part === "" ? { action: "", valid: false } : environment.parse(part, copy)
      })
      return {
        action: parsed.map(({ action }) => action.replaceAll(/\s*\n\s*/g, " ")).join("\n"),
        valid: parsed.every(({ valid }) => valid),
      }
    },
    ...(environment.completionPattern && {
      completionPattern(now: Observation) {
        const parts = (now as ParallelObservation).copies.map((copy, e) => {
          const pattern = copy && environment.completionPattern!(copy)
          return copy && pattern === undefined ? undefined : copy ? `<env${e + 1}>${pattern}</env${e + 1}>` : ""
        })
        return parts.includes(undefined) ? undefined : parts.join("")
      },
    }),
    ...(environment.expert && {
      expert(task: Task) {
        const experts = numbers.map(() => environment.expert!(task))
        return {
          complete(now: Observation, history: readonly PastStep[]) {
            const completions = (now as ParallelObservation).copies.map((copy, e) =>
              copy ? experts[e]!.complete(copy, historyOf(history, e)) : "",
            )
            if (completions.includes(undefined)) return undefined
            return completions.map((completion, e) => `<env${e + 1}>${completion}</env${e + 1}>`).join("\n")
          },
        }
      },
    }),
  }
}

function running(
  episodes: readonly EnvironmentEpisode[],
  { success, reward: paid, maxSteps, episodeEnd }: Omit<ResolvedOf<typeof parallelFields>, "copies">,
  signal: AbortSignal,
): EnvironmentEpisode {
  const live: (Observation | undefined)[] = episodes.map(({ first }) => first)
  const last: StepResult[] = []
  const all = episodes.map(({ first }) => first)
  let steps = 0
  const pictures = () => all.flatMap(({ images = [] }) => images)
  const observe = (): ParallelObservation => ({
    ...(pictures().length > 0 && { images: pictures() }),
    text: all.map(({ text }, e) => `# Environment ${e + 1}\n${text}`).join("\n\n"),
    anchor: JSON.stringify(all.map(({ anchor }, e) => [anchor, live[e] !== undefined])),
    copies: [...live],
  })
  return {
    first: observe(),
    async step(action) {
      signal.throwIfAborted() // no copy may be left that would notice
      steps++
      const actions = action.split("\n")
      const results = await Promise.all(
        episodes.map(async (episode, e) =>
          live[e] && actions[e]?.trim() ? await episode.step(actions[e]) : undefined,
        ),
      )
      const rewards: number[] = []
      let hasWon = false
      for (const [e, result] of results.entries()) {
        if (!result) continue
        rewards.push(result.reward)
        hasWon ||= isSuccess(result)
        last[e] = result
        all[e] = result.observation
        live[e] = result.terminated || result.truncated ? undefined : result.observation
      }
      const isWon = episodeEnd === "first-success" && hasWon
      const hasEnded = live.every((copy) => copy === undefined)
      const terminated = isWon || (hasEnded && last.some((result) => result.terminated))
      const truncated = !terminated && (hasEnded || steps >= maxSteps)
      const sum = rewards.reduce((total, one) => total + one, 0)
      const largest = rewards.length > 0 ? Math.max(...rewards) : 0
      const reward = paid === "max" ? largest : sum / episodes.length
      const metrics = metricsOf(last, success)
      return { observation: observe(), reward, terminated, truncated, metrics }
    },
  }
}

/** Whether a copy succeeds with this step. */
function isSuccess({ metrics, terminated, reward }: StepResult): boolean {
  return metrics?.success === undefined ? terminated && reward > 0 : metrics.success === 1
}

/** Metrics of the episode: means over the copies that report them, except success. */
function metricsOf(results: readonly StepResult[], success: "any" | "all"): Record<string, number> {
  const found = results.flatMap(({ metrics = {} }) => Object.entries(metrics))
  const names = [...new Set(found.map(([name]) => name))]
  return Object.fromEntries(
    names.map((name) => {
      const values = found.filter(([own]) => own === name).map(([, value]) => value)
      const wins = success === "any" ? Math.max(...values) : Math.min(...values)
      const isSuccess = name === "success" || name.startsWith("success/")
      return [name, isSuccess ? wins : values.reduce((sum, value) => sum + value, 0) / values.length]
    }),
  )
}

/** History of copy `e`. */
function historyOf(history: readonly PastStep[], e: number): PastStep[] {
  return history.flatMap(({ observation, completion, action }) => {
    const own = (observation as ParallelObservation).copies[e]
    return own ? [{ observation: own, completion: partOf(completion, e), action: action.split("\n")[e] ?? "" }] : []
  })
}

/** Part of a completion for copy `e`; empty if there is none. */
function partOf(completion: string, e: number): string {
  // No regular expression: it would take quadratic time on many opening tags without a closing one.
  const [open, close] = [`<env${e + 1}>`, `</env${e + 1}>`]
  const from = completion.indexOf(open)
  const to = from < 0 ? -1 : completion.indexOf(close, from)
  return to < 0 ? "" : completion.slice(from + open.length, to).trim()
}

async function disposeOf(episode: EnvironmentEpisode): Promise<void> {
  await episode[Symbol.asyncDispose]?.()
}
