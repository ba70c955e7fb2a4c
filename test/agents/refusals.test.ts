import { expect, it } from "vitest"
import { type Agent, agentLoop } from "../../src/agents/agent.ts"
import { openGateway } from "../../src/agents/gateway.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { rolloutMetrics } from "../../src/training/metrics.ts"
import { atOnce } from "../../src/util/pace.ts"
import { Random } from "../../src/util/random.ts"
import { ask, user } from "../endpoint/ask.ts"
import { Scripted } from "../endpoint/scripted.ts"
import { open, tokenizerFolder } from "../tokenizer/scratch.ts"

/** Plays episodes of an agent whose calls are rejected, with what is warned of. */
async function play(agent: Agent<number>, { temperature = 1, episodes = 3, patience = 0.01 } = {}) {
  const tokenizer = await open(await tokenizerFolder())
  await using gateway = await openGateway()
  const warnings: string[] = []
  const onWarning = (message: string) => void warnings.push(message)
  const { groups } = await rollout({
    ...{
      policy: new Scripted(tokenizer, ["yes"]),
      tokenizer,
      tasks: [1],
      groupSize: episodes,
      concurrency: 2,
      temperature,
    },
    ...{ maxCompletionTokens: 8, maxSteps: 3, maxPositions: 1024, environmentTimeout: 10, random: new Random(1) },
    agentLoop: agentLoop(agent, gateway, { onWarning, patience }),
  })
  return { groups, episodes: groups[0]!.episodes, warnings }
}

const refusal = "400 temperature is fixed to 0.4 by the run: leave it out, or send 0.4."

it("an agent that swallows every rejection fails for it, instead of waiting for ever", async () => {
  const aborted: boolean[] = []
  const agent: Agent<number> = async (_, context) => {
    context.signal.addEventListener("abort", () => aborted.push(true))
    void ask(context, [user("Hi")], { temperature: 1 }).catch(() => {})
    await ask(context, [user("Hi")], { temperature: 0.1 }).catch(() => {})
    return await new Promise<never>(() => {})
  }
  const { episodes, warnings } = await play(agent, { temperature: 0.4 })
  const message = `The gateway rejected every call of the agent (2), and the agent neither ended nor sent another: ${refusal}`
  expect(episodes.map(({ outcome, error }) => [outcome, error?.message])).toEqual(
    episodes.map(() => ["failed", expect.stringContaining(message)]),
  )
  expect(aborted).toEqual([true, true, true])
  expect(warnings).toEqual([
    `A call of the agent was rejected: ${refusal} Such a rejection is reported once; episode/rejected-calls counts them.`,
  ])
})

it("an agent that continues after a rejection is waited for, and its rejected calls are counted", async () => {
  const agent: Agent<number> = async (_, context) => {
    await ask(context, [user("Hi")], { temperature: 0.1 }).catch(() => {})
    const first = await ask(context, [user("Hi")], { temperature: context.temperature })
    await ask(context, [user("Hi"), first, user("?")], { top_p: 0.5 }).catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 50)) // a slow tool
    return { reward: 1 }
  }
  const { groups, episodes, warnings } = await play(agent, { temperature: 0.4 })
  expect(episodes.map(({ outcome, metrics, steps }) => [outcome, metrics["rejected-calls"], steps.length])).toEqual(
    episodes.map(() => ["terminated", 2, 1]),
  )
  const credit = { advantages: new Float64Array(3) } as never
  expect(atOnce(rolloutMetrics(groups, credit, [], 1))["episode/rejected-calls"]).toBe(2)
  expect(warnings.map((text) => /rejected: (.*?)[,:]/.exec(text)?.[1])).toEqual([
    "400 temperature is fixed to 0.4 by the run",
    "400 top_p would change sampling and is not supported",
  ])
})

it("an agent that ends without a completion fails with the rejection", async () => {
  const agent: Agent<number> = async (_, context) => {
    await ask(context, [user("Hi")], { temperature: 1 }).catch(() => {})
    return { reward: 0 }
  }
  const { episodes } = await play(agent, { temperature: 0.4, patience: 1000 })
  expect(episodes[0]!.error?.message).toContain(`every call was rejected: ${refusal}`)
})

it("a limit of the episode is no rejection", async () => {
  const agent: Agent<number> = async (_, context) => {
    for (;;) await ask(context, [user("Hi")])
  }
  const { episodes, warnings } = await play(agent, { patience: 1000 })
  expect(episodes.map(({ outcome, steps }) => [outcome, steps.length])).toEqual(episodes.map(() => ["truncated", 3]))
  expect(warnings).toEqual([])
})
