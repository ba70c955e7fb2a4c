import { integer, oneOf } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { around } from "./around.ts"
import type { Environment, EnvironmentEpisode, Message, Observation, PastStep, StepResult } from "./environment.ts"

/** Options of `parallel`. */
export const parallelFields = {
  copies: integer(4, "Number of copies of the environment in each episode.", { min: 2 }),
  success: oneOf("any", ["any", "all"], "Whether any or all copies must succeed for the episode to succeed."),
}

/** Options of `parallel`. */
export type ParallelOptions = OptionsOf<typeof parallelFields>

/** Observation with that of each copy; undefined for copies whose episode has ended. */
interface ParallelObservation extends Observation {
  readonly copies: readonly (Observation | undefined)[]
}

/**
 * Wraps an environment so that one agent acts in several copies at each step (DPEPO, arXiv 2604.24320, which uses 4 copies).
 *
 * A completion has one part per copy: `<env1>…</env1>`, `<env2>…</env2>` and so on. The action has one line per copy, as the estimator
 * `dpepo` reads it; the line of an ended copy is empty.
 *
 * Our interpretation: the reward is the mean of the copies' rewards. The anchor combines the anchors of all copies. The episode ends when
 * the last copy ends. Metrics are means over the copies, except `success`. The prompt contains each copy's prompt under its number.
 *
 * @throws BAD_ARGUMENT for an unknown or invalid option
 */
export function parallel<Task>(environment: Environment<Task>, options: ParallelOptions = {}): Environment<Task> {
  const { copies: count, success } = readOptions("parallel", options, parallelFields)
  const numbers = Array.from({ length: count }, (_, e) => e)
  return {
    ...around(environment),
    async start(task, { signal, random }) {
      const starting = numbers.map((e) => environment.start(task, { signal, random: random.fork("copy", e) }))
      const started = await Promise.allSettled(starting)
      const episodes = started.flatMap((one) => (one.status === "fulfilled" ? one.value : []))
      const dispose = async () => void (await Promise.all(episodes.map(disposeOf)))
      const failed = started.find((one) => one.status === "rejected")
      if (failed) {
        await dispose()
        throw failed.reason
      }
      return { ...running(episodes, success), [Symbol.asyncDispose]: dispose }
    },
    prompt(task, history, now) {
      const { copies } = now as ParallelObservation
      const shown = numbers.flatMap((e): Message[][] =>
        copies[e] ? [environment.prompt(task, historyOf(history, e), copies[e])] : [],
      )
      const system = shown[0]!.filter(({ role }) => role === "system")
      const live = numbers.filter((e) => copies[e])
      const parts = shown.map((messages, at) => {
        const said = messages.filter(({ role }) => role !== "system").map(({ content }) => content)
        return `# Environment ${live[at]! + 1}\n${said.join("\n\n")}`
      })
      const tags = live.map((e) => `<env${e + 1}>…</env${e + 1}>`).join(" ")
      const ask = `You act in ${live.length} environments at once. Reply to each in a part of its own: ${tags}`
      return [...system, { role: "user", content: [...parts, ask].join("\n\n") }]
    },
    parse(reply, now) {
      const parsed = (now as ParallelObservation).copies.map(
        (copy, e) => copy && environment.parse(partOf(reply, e), copy),
      )
      return {
        action: parsed.map((one) => one?.action.replaceAll(/\s*\n\s*/g, " ") ?? "").join("\n"),
        valid: parsed.every((one) => one?.valid !== false),
      }
    },
    ...(environment.expert && {
      expert(task: Task) {
        const experts = numbers.map(() => environment.expert!(task))
        return {
          reply(now: Observation, history: readonly PastStep[]) {
            const replies = (now as ParallelObservation).copies.map((copy, e) =>
              copy ? experts[e]!.reply(copy, historyOf(history, e)) : "",
            )
            if (replies.includes(undefined)) return undefined
            return replies.map((reply, e) => `<env${e + 1}>${reply}</env${e + 1}>`).join("\n")
          },
        }
      },
    }),
  }
}

function running(episodes: readonly EnvironmentEpisode[], success: "any" | "all"): EnvironmentEpisode {
  const live: (Observation | undefined)[] = episodes.map(({ first }) => first)
  const last: StepResult[] = []
  const all = episodes.map(({ first }) => first)
  const observe = (): ParallelObservation => ({
    text: all.map(({ text }, e) => `# Environment ${e + 1}\n${text}`).join("\n\n"),
    anchor: JSON.stringify(all.map(({ anchor }, e) => [anchor, live[e] !== undefined])),
    copies: [...live],
  })
  return {
    first: observe(),
    async step(action) {
      const actions = action.split("\n")
      const results = await Promise.all(
        episodes.map(async (episode, e) => (live[e] ? await episode.step(actions[e] ?? "") : undefined)),
      )
      let reward = 0
      for (const [e, result] of results.entries()) {
        if (!result) continue
        reward += result.reward / episodes.length
        last[e] = result
        all[e] = result.observation
        live[e] = result.terminated || result.truncated ? undefined : result.observation
      }
      const isOver = live.every((copy) => copy === undefined)
      const terminated = isOver && last.some((result) => result.terminated)
      const metrics = metricsOf(last, success)
      return { observation: observe(), reward, terminated, truncated: isOver && !terminated, metrics }
    },
  }
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
  return history.flatMap(({ observation, reply, action }) => {
    const own = (observation as ParallelObservation).copies[e]
    return own ? [{ observation: own, reply: partOf(reply, e), action: action.split("\n")[e] ?? "" }] : []
  })
}

/** Part of a completion for copy `e`; empty if there is none. */
function partOf(reply: string, e: number): string {
  // No regular expression: it would take quadratic time on many opening tags without a closing one.
  const [open, close] = [`<env${e + 1}>`, `</env${e + 1}>`]
  const from = reply.indexOf(open)
  const to = from < 0 ? -1 : reply.indexOf(close, from)
  return to < 0 ? "" : reply.slice(from + open.length, to).trim()
}

async function disposeOf(episode: EnvironmentEpisode): Promise<void> {
  await episode[Symbol.asyncDispose]?.()
}
