import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import type { Agent } from "../src/agents/agent.ts"
import { NativePolicy } from "../src/engine/native/native-policy.ts"
import type { SqlTask } from "../src/environment/sql/sql.ts"
import { rolloutDefaults } from "../src/rollout/options.ts"
import { rollout } from "../src/rollout/rollout.ts"
import { takeTasks } from "../src/rollout/tasks.ts"
import { initializeModel } from "../src/sft/initialize.ts"
import { sft } from "../src/sft/sft.ts"
import { Tokenizer } from "../src/tokenizer/tokenizer.ts"
import { evaluate } from "../src/training/evaluate.ts"
import { playerOf } from "../src/training/player.ts"
import { layOutSequences } from "../src/training/rows.ts"
import { collectSteps } from "../src/training/steps.ts"
import { train } from "../src/training/train.ts"
import { Random } from "../src/util/random.ts"
import { installed, load } from "./clients/load.ts"
import { byRow } from "./engine/by-row.ts"

// The agents of examples/agents, each on its client as it is installed from npm.

const example = async (name: string) => await load(new URL(`../examples/agents/${name}.ts`, import.meta.url).href)

it.skipIf(!installed).each(["ai-sdk", "openai", "anthropic", "langchain", "mcp"])(
  "the agent on %s is cloned from its expert and trained (npm ci --prefix examples/agents installs the clients)",
  async (name) => {
    const [{ agent }, { expert, shop: environment }, { sftOptions, training }]: [
      { agent: Agent<SqlTask> },
      typeof import("../examples/agents/shop.ts"),
      typeof import("../examples/agents/recipe.ts"),
    ] = await Promise.all([name, "shop", "recipe"].map(example) as never)
    const folder = await mkdtemp(join(tmpdir(), "gigpo-agents-"))
    try {
      const directory = join(folder, "model")
      const options = { seed: 1, hiddenSize: 32, layers: 1, heads: 2, vocabularySize: 600, maxPositions: 1024 }
      await initializeModel({ directory, environment, agent, expert, options })
      await using policy = await NativePolicy.open(directory, { threads: 2 })
      await using tokenizer = await Tokenizer.open(directory)
      const player = { policy, tokenizer, environment, agent }

      // The expert, speaking in the model's place, answers every question.
      const tasks = takeTasks(environment, "test", new Random(1), 8)
      await using taught = playerOf({ ...player, expert })
      const { groups } = await rollout({
        ...{ ...rolloutDefaults, policy, tokenizer, tasks, agentLoop: taught.agentLoop, groupSize: 1 },
        ...{ maxPositions: 1e6, random: new Random(1) },
      })
      expect(groups.map(({ episodes: [episode] }) => episode!.error ?? episode!.metrics.success)).toEqual(
        tasks.map(() => 1),
      )
      const calls = groups.map(({ episodes: [episode] }) => episode!.steps.length)
      expect(new Set(calls)).toEqual(new Set([3, 4]))

      const reports = await sft({ ...player, expert, ...sftOptions, tasks: 24, epochs: 4 })
      expect(reports.at(-1)!.completions).toBeGreaterThan(24 * 2.5)
      expect(reports.at(-1)!.loss).toBeLessThan(reports[0]!.loss)

      const iterations = await train({ ...player, ...training, iterations: 2, groups: 2, groupSize: 2 })
      expect(iterations.length).toBe(2)
      for (const { metrics, failures } of iterations) {
        expect(failures).toBeUndefined()
        expect(metrics["episode/failed"]).toBe(0)
      }
      expect(policy.optimizerSteps).toBeGreaterThan(0)
      expect(await evaluate({ ...player, tasks: 4, rollout: training.rollout! })).toMatchObject({
        episodes: 4,
        failed: 0,
      })
    } finally {
      await rm(folder, { recursive: true })
    }
  },
)

it.skipIf(!installed)(
  "the agents draw the same at the same seed, whatever their client, in rows that are exact",
  async () => {
    const { expert, shop: environment }: typeof import("../examples/agents/shop.ts") = await example("shop")
    const folder = await mkdtemp(join(tmpdir(), "gigpo-agents-"))
    try {
      const directory = join(folder, "model")
      const agents = Object.fromEntries(
        await Promise.all(
          ["openai", "anthropic", "mcp"].map(
            async (name) => [name, (await example(name)).agent as Agent<SqlTask>] as const,
          ),
        ),
      )
      const options = { seed: 1, hiddenSize: 64, layers: 1, heads: 2, vocabularySize: 600, maxPositions: 1024 }
      await initializeModel({ directory, environment, agent: agents.openai!, expert, options })
      await using policy = await NativePolicy.open(directory, { threads: 2 })
      await using tokenizer = await Tokenizer.open(directory)
      // Enough for calls of tools, and for some turns.
      const learned = { tasks: 160, epochs: 6, completionsPerUpdate: 16, optimizer: { learningRate: 3e-3 } }
      await sft({ policy, tokenizer, environment, agent: agents.openai!, expert, ...learned })
      const tasks = takeTasks(environment, "test", new Random(1), 6)
      const played = async (agent: Agent<SqlTask>) => {
        await using player = playerOf({ agent, environment })
        const { groups } = await rollout({
          ...{ ...rolloutDefaults, policy, tokenizer, tasks, agentLoop: player.agentLoop, groupSize: 2 },
          ...{ maxCompletionTokens: 64, maxPositions: 1024, random: new Random(2) },
        })
        return groups.map(({ episodes }) => episodes)
      }
      const groups = await played(agents.openai!)
      const told = (groups: Awaited<ReturnType<typeof played>>) =>
        groups
          .flat()
          .map(({ steps, outcome }) => [
            outcome,
            ...steps.map(({ prompt, text, action }) => [[...prompt], text, action]),
          ])
      const steps = groups.flat().flatMap(({ steps }) => steps)
      expect(steps.length).toBeGreaterThan(1.5 * 2 * tasks.length)
      for (const name of ["anthropic", "mcp"]) {
        const own = await played(agents[name]!)
        expect(told(own), name).toEqual(told(groups))
        expect(own.flat().filter(({ steps }) => steps.some(({ retokenized }) => retokenized))).toEqual([])
        const rows = layOutSequences(collectSteps(own))
        expect(rows.length).toBeLessThan(steps.length)
        const scored = byRow(rows, await policy.logProbs(rows))
        for (const [at, { segments }] of rows.entries()) {
          const sampled = segments.flatMap(({ logProbs }) => [...logProbs!])
          expect(scored[at]!.logProbs.length).toBe(sampled.length)
          for (const [i, logProb] of scored[at]!.logProbs.entries())
            expect(Math.abs(logProb - sampled[i]!)).toBeLessThan(1e-4)
        }
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  },
)
