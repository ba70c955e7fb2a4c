import { existsSync, readFileSync } from "node:fs"
import { resolve } from "node:path"
import { describe, expect, it } from "vitest"
import { changes, statuses } from "../../src/algorithms/algorithm.ts"
import { algorithms } from "../../src/algorithms/algorithms.ts"
import { bring } from "../../src/algorithms/bring.ts"
import { findAlgorithms } from "../../src/algorithms/find.ts"
import { settingsFor, settingsOf } from "../../src/algorithms/settings-for.ts"
import { resolveConfig } from "../../src/cli/config/resolve.ts"
import { estimators } from "../../src/credit/estimators.ts"
import { memories } from "../../src/environment/memory/memories.ts"
import { wrappers } from "../../src/environment/wrappers.ts"
import { sftLosses } from "../../src/loss/cloning-losses.ts"
import { losses } from "../../src/loss/losses.ts"
import { rolloutHooks } from "../../src/rollout/hooks/built-in.ts"
import { curricula } from "../../src/training/curriculum/curricula.ts"

const systems = algorithms.map(({ system }) => system)
const asked = (key: string) => new Set(algorithms.flatMap(({ set = {} }) => set[key] ?? []))

describe("the table of algorithms", () => {
  it("names none twice, in files that there are", () => {
    expect(new Set(systems).size).toBe(systems.length)
    const files = algorithms.flatMap(({ file, otherFiles = [] }) => [...(file ? [file] : []), ...otherFiles])
    expect(files.filter((file) => !existsSync(file))).toEqual([])
  })

  it("asks for what is there, and for nothing else, by settings that are taken", () => {
    for (const algorithm of algorithms) {
      const { system, status, file } = algorithm
      const isThere = status === "exact" || status === "partial" || status === "interpreted"
      expect([system, settingsFor(algorithm).length > 0, file !== undefined]).toEqual([system, isThere, isThere])
      const config = () => resolveConfig("model: m\nenvironment: { name: sokoban }\n", settingsOf(algorithm))
      expect(config, system).not.toThrow()
      if (status === "exact") expect(algorithm.equation, system).toBeDefined()
      if (status === "not implemented" || status === "partial") expect(algorithm.note, system).toBeDefined()
    }
  })

  it("calls nothing exact that is known from others than the authors, or from an abstract", () => {
    const secondHand = /abstract|summary|others|reproduction|examined|unverified/
    const exact = algorithms.filter(({ status }) => status === "exact" || status === "partial")
    expect(exact.filter(({ source }) => secondHand.test(source)).map(({ system }) => system)).toEqual([])
    expect(algorithms.filter(({ source }) => source.trim() === "").map(({ system }) => system)).toEqual([])
  })

  it("has every name that ships", () => {
    const shipped = {
      "training.estimator.name": estimators,
      "training.loss.name": losses,
      "environment.memory": memories,
    }
    const others = {
      "training.curriculum.name": curricula,
      "training.rolloutHooks.name": rolloutHooks,
      "environment.wrapper.name": wrappers,
      "sft.loss.name": sftLosses,
    }
    for (const [key, names] of Object.entries({ ...shipped, ...others }))
      expect([...asked(key)].sort()).toEqual(Object.keys(names).sort())
  })

  it("is the page docs/algorithms.md (npm run docs:algorithms makes it)", async () => {
    const { pageOf } = (await import(resolve("scripts/algorithms.mjs"))) as { pageOf(table: object): string }
    expect(readFileSync("docs/algorithms.md", "utf8")).toBe(
      pageOf({ algorithms, settingsFor, changes, statuses, bring }),
    )
  })

  const reference = resolve("../shared/reference/successors.md")
  it.skipIf(!existsSync(reference))(
    "has all systems that are known to cite GiGPO (skipped where ../shared is absent)",
    () => {
      const rows = readFileSync(reference, "utf8").match(/^\| (0a|0b|\d+) \|.*$/gm)!
      expect(rows).toHaveLength(54)
      const known = rows.map((row) => row.split("|")[2]!.replaceAll("*", "").trim())
      const words = (name: string) => name.replace(/ \(.*/, "").replace(/ (and .*|\+ .*)$/, "")
      const has = (name: string) => systems.some((system) => system.includes(words(name)))
      expect(known.filter((name) => !has(name))).toEqual([])
    },
  )
})

describe("algorithms are found", () => {
  const found = (...words: string[]) => findAlgorithms(words).map(({ system }) => system)

  it("by what is changed, by names of ours, and by parts of a system's", () => {
    expect(found()).toEqual(systems)
    expect(found("curriculum")).toEqual(
      algorithms.filter((one) => one.changes.includes("curriculum")).map(({ system }) => system),
    )
    expect(found("hgpo")).toEqual(["HGPO"])
    expect(found("branch-at", "gdpo")).toEqual(["GDPO", "StraTA"])
    expect(found("dual clip")).toEqual(["PPO's clipped surrogate"])
    expect(found("k3")).toEqual(["KL to the reference, adaptive"])
    expect(found("GAE")).toEqual(["PPO", "HiPER"])
    expect(found("difflib")).toEqual(["GiGPO"])
    expect(found("constant-context")).toEqual(["From History to State (Constant-Context Skill Learning)"])
  })

  it.each([
    ["hgop", /no algorithm hgop. Did you mean hgpo\?/],
    ["credits", /Did you mean credit\?/],
    ["chess-by-post", /Known changes: credit, step-groups/],
  ])("or rejected with what comes near: %s", (word, message) => {
    expect(() => findAlgorithms([word])).toThrow(
      expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) }),
    )
  })
})
