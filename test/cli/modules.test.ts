import { createHash } from "node:crypto"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  configuredExpert,
  configuredObservers,
  configuredPlayer,
  configuredTraining,
  moduleFields,
  openConfiguredEnvironment,
} from "../../src/cli/config/modules.ts"
import { renderConfig } from "../../src/cli/config/render.ts"
import { loadConfig } from "../../src/cli/config/resolve.ts"
import type { Environment } from "../../src/environment/environment.ts"
import type { RolloutHooks } from "../../src/rollout/hooks.ts"
import { checkSameConfig, formatRunConfig } from "../../src/runs/config.ts"

const constructors = pathToFileURL(join(import.meta.dirname, "../../src/options/field.ts")).href

let folder = ""
let files = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-modules-"))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A new file in the folder, never seen by `import`. */
async function put(text: string, extension = "mjs"): Promise<string> {
  const name = `mine-${files++}.${extension}`
  await writeFile(join(folder, name), text)
  return name
}

const least = "model: m\nenvironment: { name: sokoban }\n"

async function load(text: string, base = least, sets: readonly string[] = []) {
  const path = join(folder, await put(base + text, "yaml"))
  return await loadConfig(path, sets)
}

const estimatorWithOptions = `
import * as fields from ${JSON.stringify(constructors)}
export const options = {
  strength: fields.number(1, "How strong it is.", { min: 0 }),
  slope: fields.scheduled(fields.number(0.5, "How steep.")),
}
export default ({ strength, slope }) => ({
  name: "mine",
  estimate: (batch) => ({ advantages: batch.rewards.map((reward) => strength * reward), metrics: { slope } }),
})
`

describe("the observer of a run", () => {
  const observing = async (text: string, options = "") =>
    await configuredObservers(await load(`observer: { use: ./${await put(text)}${options} }\n`))

  it("is made of the module with its options, alone or in a list", async () => {
    const table = `import * as fields from ${JSON.stringify(constructors)}
      export const options = { path: fields.string("none", "Path.") }
      export default ({ path }) => `
    expect(await observing(`${table} ({ name: path, report() {} })`, ", path: a")).toMatchObject([{ name: "a" }])
    expect(await observing(`${table} [{ name: path, end() {} }, { start() {} }]`)).toHaveLength(2)
    expect(await configuredObservers(await load(""))).toEqual([])
  })

  it("is rejected without a function of an observer, with the place in the file", async () => {
    for (const [text, problem] of [
      ["export default () => {}", "must be an observer: an object with start, episodes, evaluation, report or end"],
      ["export default [{ reports() {} }]", "it has none of them"],
      ["export default { report: 1 }", "has a report that is not a function"],
    ] as const)
      await expect(observing(text)).rejects.toMatchObject({
        code: "BAD_CONFIG",
        message: expect.stringMatching(new RegExp(`yaml, line 3: .*${problem}`)),
      })
  })
})

describe("the expert of SFT", () => {
  const tasks = "export default { name: 'mine', tasks: () => [1] }"
  const withAgent = async (agent: string) =>
    await load(`agent: ./${await put(agent)}\n`, `model: m\nenvironment: ./${await put(tasks)}\n`)

  it("is an export of the agent's module, whose agent plays", async () => {
    const config = await withAgent("export default async () => ({ reward: 1 })\nexport const expert = () => 'a'\n")
    const { agent, expert, environment } = await configuredExpert(config)
    expect([environment.name, await agent!(1, {} as never), expert!(1, [])]).toEqual(["mine", { reward: 1 }, "a"])
  })

  it("is required: the error names the export and the place in the file", async () => {
    const config = await withAgent("export default async () => ({ reward: 1 })\n")
    await expect(configuredExpert(config)).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringMatching(/yaml, line 3: .*expert\(task, messages\).*--data/),
    })
  })

  it("is the environment's without an agent", async () => {
    const { agent, environment } = await configuredExpert(await load(""))
    expect([agent, environment.name]).toEqual([undefined, "sokoban"])
  })
})

describe("a custom module", () => {
  it("provides an estimator, created with checked and completed options", async () => {
    const name = await put(estimatorWithOptions)
    const config = await load(`training: { estimator: { use: ./${name}, strength: 2 } }\n`)
    const sha256 = createHash("sha256")
      .update(await readFile(join(folder, name)))
      .digest("hex")
    expect(config.training.estimator).toEqual({ use: join(folder, name), sha256, strength: 2, slope: 0.5 })
    const { estimator } = await configuredTraining(config)
    const { advantages, metrics } = (estimator as unknown as { estimate: (batch: object) => never }).estimate({
      rewards: Float64Array.of(1, 3),
    }) as { advantages: Float64Array; metrics: object }
    expect([...advantages]).toEqual([2, 6])
    expect(metrics).toEqual({ slope: 0.5 })
  })

  it("provides a function, or a loss with the options of any loss", async () => {
    const loss =
      await put(`export const options = { deep: (await import(${JSON.stringify(constructors)})).boolean(true, "x") }
      export default ({ deep, ...rest }) => ({ name: String(deep) + Object.keys(rest), evaluate: () => ({}) })`)
    const estimator = await put("export default function mean() {}")
    const text = `training: { estimator: { use: ${estimator} }, loss: { use: ${loss}, deep: false, klWeight: 0.1 } }\n`
    const config = await load(text)
    expect(config.training.loss).toMatchObject({ deep: false, klWeight: 0.1, klEstimator: "k3", entropyWeight: 0 })
    const options = await configuredTraining(config)
    expect((options.estimator as { name: string }).name).toBe("mean")
    expect(options.loss).toMatchObject({ use: { name: "false" }, klWeight: 0.1, aggregation: "token-mean" })
    expect(options.loss).not.toHaveProperty("deep")
  })

  it("provides a memory for a named environment, and a curriculum", async () => {
    const memory =
      await put(`export const options = { size: (await import(${JSON.stringify(constructors)})).integer(3, "Size.") }
      export default ({ size }) => ({ name: "mine " + size, start: () => ({ render: () => "" }) })`)
    const curriculum = await put("export default { name: 'short', open: () => ({ start: () => ({ maxSteps: 2 }) }) }")
    const base = `model: m\nenvironment: { name: sokoban, memory: { use: ./${memory}, size: 5 } }\n`
    const config = await load(`training: { curriculum: ./${curriculum} }\n`, base)
    expect(config.environment.memory).toMatchObject({ use: join(folder, memory), size: 5 })
    expect((await openConfiguredEnvironment(config)).memory?.name).toBe("mine 5")
    expect((await configuredTraining(config)).curriculum).toMatchObject({ name: "short" })
    expect(renderConfig(config, await moduleFields(config))).toContain("size: 5")
    const named = await load(
      "training: { curriculum: horizon }\n",
      "model: m\nenvironment: { name: sokoban, memory: state }\n",
    )
    expect((await openConfiguredEnvironment(named)).memory?.name).toBe("state")
    expect((await configuredTraining(named)).curriculum).toMatchObject({ name: "horizon", from: 5 })
    await expect(load("", "model: m\nenvironment: { name: sokoban, memory: stat }\n")).rejects.toThrow(
      /memory\.name must be/,
    )
  })

  it("provides turn hooks", async () => {
    const turns = await put("export default { onTurn: () => ({ kind: 'accept' }) }")
    const own = (await configuredTraining(await load(`training: { rolloutHooks: ./${turns} }\n`)))
      .rolloutHooks as RolloutHooks
    expect(own.onTurn).toBeTypeOf("function")
    const named = await configuredTraining(await load("training: { rolloutHooks: { name: t2po, maxResamples: 5 } }\n"))
    expect(named.rolloutHooks).toMatchObject({ name: "t2po", maxResamples: 5, resampleThreshold: 0.3 })
    const none = await put("export default { turn: () => 1 }")
    await expect(load(`training: { rolloutHooks: ./${none} }\n`).then(configuredTraining)).rejects.toThrow(
      /must be hooks/,
    )
    await expect(load("training: { rolloutHooks: t2p }\n")).rejects.toThrow(/rolloutHooks\.name must be .*t2po/)
  })

  it("provides a wrapper of a built-in or custom environment", async () => {
    const shy = `export default (inner) => ({ ...inner, name: "shy " + inner.name })`
    const mine = await put(shy)
    const own = await put(`export default { name: "own", tasks() {}, start() {}, prompt() {}, parse() {} }`)
    const opened = async (environment: string) =>
      await openConfiguredEnvironment(await load("", `model: m\nenvironment: ${environment}\n`))
    const shown = (environment: Environment) => {
      const now = { text: "here", anchor: "here", planning: true }
      return environment.parse("  go on  ", now)
    }
    expect(shown(await opened("{ name: sokoban, wrapper: plan-first }"))).toEqual({ action: "go on", valid: true })
    expect(shown(await opened("{ name: sokoban }")).valid).toBe(false)
    expect((await opened(`{ name: sokoban, wrapper: ./${mine} }`)).name).toBe("shy sokoban")
    expect((await opened(`{ use: ./${own}, wrapper: { use: ./${mine} } }`)).name).toBe("shy own")
    expect((await opened(`{ use: ./${own}, wrapper: { name: look-first, steps: 3 } }`)).name).toBe("own")
  })

  it.each([
    ["{ name: sokoban, wrapper: plan-frist }", /environment\.wrapper\.name must be .*Did you mean plan-first\?/],
    ["{ name: sokoban, wrapper: { name: parallel, copies: 1 } }", /environment\.wrapper\.copies must be .*at least 2/],
    ["{ name: sokoban, wrapper: { name: parallel, copis: 2 } }", /copis.*did you mean .*copies/],
  ])("nothing is built around it by %s", async (environment, message) => {
    await expect(load("", `model: m\nenvironment: ${environment}\n`)).rejects.toThrow(message)
  })

  it("wraps nothing for an agent, and an environment is not a wrapper", async () => {
    const played = await load(
      "agent: { name: process, command: [x] }\n",
      "model: m\nenvironment: { name: sokoban, wrapper: plan-first }\n",
    )
    await expect(configuredPlayer(played)).rejects.toThrow(/remove agent or environment\.wrapper/)
    const empty = await put("export default () => ({})")
    const bad = await load("", `model: m\nenvironment: { name: sokoban, wrapper: ./${empty} }\n`)
    await expect(openConfiguredEnvironment(bad)).rejects.toThrow(/the wrapped environment must be an environment/)
    const none = await put("export default { start() {} }")
    const worse = await load("", `model: m\nenvironment: { name: sokoban, wrapper: ./${none} }\n`)
    await expect(openConfiguredEnvironment(worse)).rejects.toThrow(/must be a function environment => environment/)
  })

  it("provides an environment, which names the run's folder", async () => {
    const own =
      await put(`export const options = { size: (await import(${JSON.stringify(constructors)})).integer(3, "Size.") }
      export default async ({ size }) => ({ name: "own " + size, tasks() {}, start() {}, prompt() {}, parse() {} })`)
    const config = await load("", `model: m\nenvironment: { use: ./${own}, size: 4 }\n`)
    expect(config.run).toBe(join("runs", own.replace(".mjs", "")))
    expect((await openConfiguredEnvironment(config)).name).toBe("own 4")
  })

  it.each(["{ name: ./FILE }", "./FILE", "FILE", "{ use: FILE }"])(
    "is given by its path alone: %s",
    async (written) => {
      const file = await put("export default { name: 'own', tasks() {}, start() {}, prompt() {}, parse() {} }")
      const config = await load("", `model: m\nenvironment: ${written.replace("FILE", file)}\n`)
      expect(config.environment).toEqual({ use: join(folder, file), sha256: expect.any(String) })
      expect((await openConfiguredEnvironment(config)).name).toBe("own")
    },
  )

  it("is given by its path at any place, with its options next to it", async () => {
    const [estimator, loss] = [await put(estimatorWithOptions), await put("export default function mine() {}")]
    const text = `training: { estimator: { name: ./${estimator}, strength: 3 }, loss: ./${loss} }\n`
    const config = await load(text)
    expect(config.training.estimator).toMatchObject({ use: join(folder, estimator), strength: 3 })
    expect(config.training.loss).toMatchObject({ use: join(folder, loss), klWeight: 0 })
    const set = await load(text, least, ["training.estimator.strength=4", "training.loss.klWeight=0.5"])
    expect(set.training.estimator).toMatchObject({ strength: 4 })
    expect(set.training.loss).toMatchObject({ use: join(folder, loss), klWeight: 0.5 })
    await expect(load(`training:\n  estimator:\n    name: ./gone.mjs\n`)).rejects.toThrow(
      /^.*\.yaml, line 5: Could not read the module .*gone\.mjs: it does not exist\.$/,
    )
    await expect(load("", "model: m\nenvironment: { name: gone }\n")).rejects.toThrow(
      /line 2: environment\.name must be "sokoban" or .*, not "gone"\. For a module of your own, give its path: /,
    )
    await expect(load("", "model: m\nenvironment: { name: ./a.mjs, use: ./b.mjs }\n")).rejects.toThrow(
      /environment has both name and use; give one of them\./,
    )
  })

  it("is found through the configuration of a run, and changes are detected", async () => {
    const name = await put("export default () => {}")
    const config = await load(`training: { estimator: { use: ./${name} } }\n`)
    const kept = join(folder, await put(formatRunConfig(config), "json"))
    expect(await loadConfig(kept, [], { trust: true })).toEqual(config)
    await writeFile(join(folder, name), "export default () => 1")
    const changed = await loadConfig(kept, [], { trust: true })
    expect(changed.training.estimator).toMatchObject({ use: join(folder, name) })
    expect(() => checkSameConfig("runs/a", config, changed, [])).toThrow(
      expect.objectContaining({
        code: "BAD_CONFIG",
        message:
          "The run in runs/a was started with another configuration: the module " +
          `${join(folder, name)} has changed since the start of the run (its SHA-256 differs). ` +
          "Restore these values to resume the run, or start a new run in another folder (--fork starts it with the state of this one).",
      }),
    )
    const other = await load(`training: { estimator: { use: ./${await put("export default () => 2")} } }\n`)
    expect(() => checkSameConfig("runs/a", config, other, [])).toThrow(
      /configuration: training\.estimator\.use was ".*" and is now ".*mine-\d+\.mjs"\. Restore/,
    )
  })

  it("has explanations of its options", async () => {
    const name = await put(estimatorWithOptions)
    const config = await load(`training: { estimator: { use: ./${name}, strength: 2 } }\n`)
    const text = renderConfig(config, await moduleFields(config))
    expect(text).toContain("    # How strong it is. Default 1.\n    strength: 2\n")
    expect(text).toContain("    # How steep. Accepts a schedule. Default 0.5.\n    slope: 0.5\n")
    expect(text).not.toContain("omega:") // of gigpo
    expect(await loadConfig(join(folder, await put(text, "yaml")))).toEqual(config)
  })

  it.each<[why: string, module: string | undefined, options: string, message: RegExp]>([
    ["is not there", undefined, "", /line 3: Could not read the module .*mine-\d+\.mjs: it does not exist\./],
    ["throws", "throw new Error('no luck')", "", /line 3: The module .*\.mjs threw while it was loaded: no luck/],
    ["imports what is missing", "import 'no-such-package'", "", /threw while it was loaded: .*no-such-package/],
    ["has no default", "export const estimate = 1", "", /line 3: .*has no default export/],
    [
      "has options that are not a table",
      "export const options = { a: 1 }; export default () => {}",
      "",
      /are not a table/,
    ],
    ["has options for no function", `export const options = {}; export default {}`, "", /must be a function of them/],
    ["is no JavaScript", "export default {", "", /line 3: The module .* threw while it was loaded: /],
    [
      "has a class for its options",
      "export const options = {}; export default class {}",
      "",
      /line 3: .*, not a class\./,
    ],
    [
      "takes no options",
      "export default () => {}",
      ", strength: 2",
      /line 3: training.estimator.strength is not an option; training.estimator takes no options besides use\.$/,
    ],
    [
      "has a default of no meaning",
      `import * as fields from ${JSON.stringify(constructors)}
      export const options = { rate: fields.number(5, "How fast.", { max: 1 }) }; export default () => {}`,
      "",
      /line 3: .*: The default of the option "How fast." must be at most 1, not 5\./,
    ],
    [
      "has another option",
      estimatorWithOptions,
      ", strenght: 2",
      /line 3: training.estimator.strenght is not an option; did you mean training.estimator.strength\?/,
    ],
    [
      "has an option of another type",
      estimatorWithOptions,
      ", strength: -2",
      /line 3: training.estimator.strength must be at least 0, not -2/,
    ],
    [
      "claims a key of ours",
      `export const options = { sha256: { help: "", validate() {} } }; export default () => {}`,
      "",
      /line 3: .* exports the option sha256, which is a reserved key/,
    ],
  ])("that %s is rejected with the line", async (_, module, options, message) => {
    const name = module === undefined ? `mine-${files++}.mjs` : await put(module)
    await expect(load(`training: { estimator: { use: ./${name}${options} } }\n`)).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringMatching(message),
    })
  })

  it.each<[string, RegExp]>([
    ["export default { name: 'x' }", /line 3: .*: its default export has no function estimate\(batch, context\)\.$/],
    [
      "export const options = {}; export default () => 3",
      /line 3: .*: the result of its default export must be a function \(batch, context\) => credit, or an object with name/,
    ],
    [
      "export default class {}",
      /line 3: .*: its default export is a class; give an instance of it, made with `new`\.$/,
    ],
    [
      "export default { name: 'x', estimate() {}, state() {} }",
      /line 3: .*: its default export has only one of state and/,
    ],
    [
      "export const options = {}; export default () => { throw new Error('no memory') }",
      /line 3: .* export threw: no memory/,
    ],
  ])("that is no estimator (%j) is rejected before a model is opened", async (module, message) => {
    const config = await load(`training: { estimator: { use: ./${await put(module)} } }\n`)
    await expect(configuredTraining(config)).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringMatching(message),
    })
  })

  it.skipIf((process.features as { typescript?: unknown }).typescript)(
    "in TypeScript is rejected only by a Node that cannot run it",
    async () => {
      const name = await put("export default () => {}", "ts")
      await expect(load(`training: { loss: { use: ./${name} } }\n`)).rejects.toThrow(
        /is TypeScript, which Node v.* does not run: use Node 22\.18 or later, or write the module in JavaScript/,
      )
    },
  )
})
