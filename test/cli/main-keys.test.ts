import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { renderMainKeys } from "../../src/cli/config/brief.ts"
import { entryAt, isKey } from "../../src/cli/config/entry-at.ts"
import { mainKeys } from "../../src/cli/config/main-keys.ts"
import { renderConfig } from "../../src/cli/config/render.ts"
import { resolveConfig } from "../../src/cli/config/resolve.ts"
import { otherNames } from "../../src/options/nearest.ts"
import { readOptions } from "../../src/options/read.ts"
import { trainFields } from "../../src/training/options.ts"

const keys = mainKeys.flatMap((group) => group.keys)

describe("the main keys", () => {
  const text = renderMainKeys()

  it("are about sixty, all valid and unique", () => {
    expect(keys.length).toBeGreaterThan(50)
    expect(keys.length).toBeLessThan(75)
    expect(new Set(keys).size).toBe(keys.length)
    for (const key of keys) {
      const { entry } = entryAt(key.replace(/\.name$/, ""))
      expect("validate" in entry || (key.endsWith(".name") && "variants" in entry), key).toBe(true)
    }
  })

  it("are shown with one line each and a description", () => {
    const lines = text.split("\n").filter((line) => /: .* # ./.test(line))
    expect(lines.length).toBe(keys.length)
    for (const [index, line] of lines.entries()) {
      expect(line).not.toMatch(/\([^)\]]*\.$/) // a parenthesis that is cut
      expect(line).toMatch(new RegExp(`^ *(# )?${keys[index]!.split(".").at(-1)}:.* # .{8,}\\.$`))
    }
    expect(text).toMatch(/^# Rollout\n {2}rollout:\n {4}temperature: 1 +# Sampling temperature\.$/m)
    expect(text).toMatch(/^device: auto +# "auto" \(the first usable NVIDIA GPU, else the CPU\), .* "all"\)\.$/m)
    expect(text).toMatch(/^ {4}# learningRate: +# .* Default: 100 \/ number of parameters/m)
  })

  it("form a configuration of defaults", () => {
    expect(Object.keys(parse(text))).toEqual([
      "seed",
      "device",
      "recompute",
      "training",
      "tensorboard",
      "recording",
      "sft",
      "initialModel",
    ])
    const sets = ["model=m", "environment.name=sokoban"]
    expect(resolveConfig(text, sets)).toEqual(resolveConfig("", sets))
  })
})

describe("the names of TRL and verl", () => {
  it("lead to options that exist", () => {
    for (const [name, key] of Object.entries(otherNames)) {
      expect(() => entryAt(key), name).not.toThrow()
      expect(() => entryAt(name), name).toThrow(`${name} is not an option; did you mean ${key}?`)
    }
  })

  it("keep the group of a key that has that option", () => {
    expect(() => entryAt("sft.learning_rate")).toThrow("did you mean sft.optimizer.learningRate?")
    expect(() => entryAt("training.lora_rank")).toThrow("did you mean lora.rank?")
  })

  it("lead to the option in a file and in code, too", () => {
    const least = "model: m\nenvironment: { name: sokoban }\n"
    const meant = (text: string) => () => resolveConfig(`${least}${text}`)
    expect(meant("training: { num_iterations: 2 }")).toThrow(
      "training.num_iterations is not an option; did you mean training.epochs?",
    )
    expect(meant("training: { beta: 0.1 }")).toThrow(
      "training.beta is not an option; did you mean training.loss.klWeight?",
    )
    expect(() => readOptions("train", { num_generations: 4 }, trainFields)).toThrow(
      "train: num_generations is not an option; did you mean groupSize?",
    )
  })

  it("have all that the glossary names", () => {
    const glossary = readFileSync(join(import.meta.dirname, "../../docs/glossary.md"), "utf8")
    const listed = glossary.match(/(TRL|verl)(:|'s) `.*?(?=[;)]|TRL|verl|\.\))/g)!.join(" ")
    const names = [...listed.matchAll(/`([\w.]*[_.\w]+)`/g)].map(([, name]) => name!)
    const options = names.filter((name) => !name.startsWith("training.") && !name.startsWith("frac_"))
    expect(options.length).toBeGreaterThan(25)
    const has = (name: string) => [name, name.split(".").at(-1)!].some((one) => Object.hasOwn(otherNames, one))
    expect(options.filter((name) => !has(name))).toEqual([])
  })
})

describe("one branch", () => {
  const part = (key: string, config?: Parameters<typeof renderConfig>[0]) => renderConfig(config, undefined, { key })

  it("of a choice shows a name with its options, ready to paste", () => {
    const text = part("training.estimator.ppo")
    expect(text).toMatch(/^training:\n {2}# Advantage estimator\.\n {2}estimator:\n {4}name: ppo\n/)
    expect(text).toContain("    lambda: 1\n")
    expect(text).not.toContain("omega")
    const least = "model: m\nenvironment: { name: sokoban }\n"
    expect(resolveConfig(`${least}${text}`).training.estimator).toMatchObject({ name: "ppo", lambda: 1 })
  })

  it("of a selected choice shows its values; of others the defaults", () => {
    const config = resolveConfig("model: m\nenvironment: sokoban\ntraining: { estimator: { name: ppo, lambda: 0.5 } }")
    expect(part("training.estimator.ppo", config)).toContain("    lambda: 0.5\n")
    expect(part("training.estimator.ppo.lambda", config)).toMatch(/^training:\n {2}estimator:\n.* {4}lambda: 0\.5\n$/s)
    expect(part("training.estimator.grpo", config)).toMatch(/ name: grpo\n/)
  })

  it("lists the other choices without explanation, unless all are requested", () => {
    const text = part("training")
    expect(text).toContain("    # Options of a different choice: gigpo config training.estimator.")
    expect(text.split("\n").length).toBeLessThan(500)
    expect(renderConfig(undefined, undefined, { key: "training", all: true }).split("\n").length).toBeGreaterThan(1000)
  })

  it.each([
    ["trainng", "training"],
    ["estimator", "training.estimator"],
    ["clipLow", "training.loss.clipLow"],
    ["hgpo", "training.estimator.hgpo"],
    ["training.estimator.hgp", "training.estimator.hgpo"],
    ["training.estimator.hgpo.gama", "training.estimator.hgpo.gamma"],
    ["environment.sokobn", "environment.sokoban"],
    ["training.estimator.gigpo.stepWeight", "training.estimator.gigpo.omega"],
    ["klWeight", "training.loss.klWeight"],
    ["entropyWeight", "training.loss.entropyWeight"],
    ["klPlacement", "training.loss.klPlacement"],
    ["aggregation", "training.loss.aggregation"],
    ["adaptiveKl", "training.loss.adaptiveKl"],
    ["num_iterations", "training.epochs"],
    ["beta", "training.loss.klWeight"],
    ["learning_rate", "training.optimizer.learningRate"],
    ["rank", "lora.rank"],
    ["max_steps", "training.iterations"],
    ["batch_size", "training.stepsPerUpdate"],
    ["training.per_device_train_batch_size", "training.stepsPerUpdate"],
    ["actor_rollout_ref.rollout.n", "training.groupSize"],
    ["algorithm.lam", "training.estimator.ppo.lambda"],
  ])("that is unknown is rejected: %s was meant to be %s", (key, meant) => {
    expect(() => part(key)).toThrow(`${key} is not an option; did you mean ${meant}?`)
  })

  it("names the setting of a file where the key has the name of a variant", () => {
    const hint =
      "did you mean training.estimator.hgpo.gamma? In a file: training.estimator.name: hgpo and training.estimator.gamma."
    expect(() => part("training.estimator.hgpo.gama")).toThrow(hint)
    expect(() => part("hgpo")).toThrow(
      "did you mean training.estimator.hgpo? In a file: training.estimator.name: hgpo.",
    )
  })

  it("of the name lists the choices, and of use explains it", () => {
    const config = resolveConfig("model: m\nenvironment: sokoban\ntraining: { estimator: { name: ppo } }")
    expect(part("training.estimator.name")).toMatch(/ {4}# One of a2tgpo, .*\n {4}name: gigpo\n$/s)
    expect(part("training.estimator.name", config)).toMatch(/ {4}name: ppo\n$/)
    expect(part("training.loss.name")).toMatch(/One of act-guide, chord, cispo.* {4}name: clipped-surrogate\n$/s)
    expect(part("environment.name")).toMatch(/One of sokoban, .*\n {2}# name:\n$/s)
    expect(part("environment.use")).toMatch(/^# .*\nenvironment:\n {2}# Path of a module.*\n {2}# use:\n$/)
    expect(() => part("training.estimator.name.more")).toThrow("training.estimator.name is not an option")
  })

  it("of a choice without names asks for the path of a module", () => {
    expect(part("observer")).toMatch(/# The path of a module \(\.\/mine\.mjs\), relative to this file\.\n/)
  })

  it("ends a default with one full stop", () => {
    expect(part("training.rolloutHooks.think-when-unsure.briefPrompt")).toMatch(/Default "[^"]*"\.\n/)
    expect(renderConfig()).not.toMatch(/[^.]\.\.(\s|$)/)
  })

  it("says in the full output where options of a variant were explained before", () => {
    const lines = renderConfig().replace(/\n +# (?! )/g, " ")
    expect(lines).toMatch(/Options of grpo: normalization, .* penaltyPlacement \(explained above\)\./)
    expect(lines).toMatch(/Options of hgpo: .* normalization \(those not below are explained above\)\./)
    expect(lines).toMatch(/Options of beliefs: maxCharacters \(explained above\)\./)
  })

  it("of an option that several variants have is that of the default variant", () => {
    expect(part("training.estimator.gamma")).toContain("Default 0.95.")
    expect(part("training.estimator.epsilon")).toContain("Default 0.000001.")
  })

  it("differs from a file by its form", () => {
    expect(["training", "training.estimator.dr-grpo", "nowhere"].map(isKey)).toEqual([true, true, true])
    expect(["my.yaml", "config.json", "runs/first", "./training", ""].map(isKey)).toEqual(Array(5).fill(false))
  })
})
