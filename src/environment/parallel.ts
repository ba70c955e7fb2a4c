import { integer, oneOf } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { around } from "./around.ts"
import type { Environment, EnvironmentEpisode, Message, Observation, StepResult, Turn } from "./environment.ts"

/** Options of `parallel`. */
export const parallelFields = {
  copies: integer(4, "Copies of the environment that are driven at once.", { min: 2 }),
  success: oneOf("any", ["any", "all"], "How many of them must succeed for the episode to succeed."),
}

/** Options of `parallel`. */
export type ParallelOptions = OptionsOf<typeof parallelFields>

/** What each copy shows; undefined of one that is over. */
interface ParallelObservation extends Observation {
  readonly copies: readonly (Observation | undefined)[]
}

/**
 * Several copies of an environment that one agent drives at once, an action in each at every step (DPEPO, arXiv 2604.24320: 4 copies). A reply
 * has a part for each copy, between <env1> and </env1> and so on; an action is a line a copy, as the estimator `dpepo` reads it, empty for a
 * copy that is over. Our reading: the reward is the mean of the copies' rewards, an anchor is all of theirs, the episode ends with the
 * last of them, metrics are means but for `success`, and each copy's prompt stands under its number.
 *
 * @throws BAD_ARGUMENT for an option that has no meaning
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
          reply(now: Observation, history: readonly Turn[]) {
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

/** Means over the copies that have them. */
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

/** What one copy lived through. */
function historyOf(history: readonly Turn[], e: number): Turn[] {
  return history.flatMap(({ observation, reply, action }) => {
    const own = (observation as ParallelObservation).copies[e]
    return own ? [{ observation: own, reply: partOf(reply, e), action: action.split("\n")[e] ?? "" }] : []
  })
}

/** Part of a reply for one copy. A regular expression takes quadratic time where many parts are opened and none is closed. */
function partOf(reply: string, e: number): string {
  const [open, close] = [`<env${e + 1}>`, `</env${e + 1}>`]
  const from = reply.indexOf(open)
  const to = from < 0 ? -1 : reply.indexOf(close, from)
  return to < 0 ? "" : reply.slice(from + open.length, to).trim()
}

async function disposeOf(episode: EnvironmentEpisode): Promise<void> {
  await episode[Symbol.asyncDispose]?.()
}
