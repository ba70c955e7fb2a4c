import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, expectTypeOf, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import { openEnvironment } from "../../src/environment/open-environment.ts"
import { environmentNames } from "../../src/environment/registry.ts"
import type { SokobanTask } from "../../src/environment/sokoban/sokoban.ts"
import { Random } from "../../src/util/random.ts"

describe("openenvironment", () => {
  it("opens every listed environment by its name", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gigpo-registry-"))
    const tasks = join(folder, "tasks.jsonl")
    await writeFile(tasks, Array.from({ length: 30 }, (_, i) => `${i}\n`).join(""))
    const needed: Readonly<Record<string, object>> = { tasks: { tasks } }
    for (const name of environmentNames) expect((await openEnvironment(name, needed[name])).name).toBe(name)
    await rm(folder, { recursive: true })
    expect(environmentNames).toContain("sokoban")
  })

  it("passes on the options", async () => {
    const environment = await openEnvironment("sokoban", { size: [8, 7] })
    const [task] = environment.tasks("test", new Random(1))
    expect(task!.room.split("\n")).toHaveLength(8)
    await expect(openEnvironment("sokoban", { boxes: 0 })).rejects.toThrow(
      expect.objectContaining({ code: "BAD_CONFIG", message: expect.stringContaining("boxes") }),
    )
  })

  it("provides the types of options and tasks by name", () => {
    expectTypeOf(openEnvironment<"sokoban">).returns.resolves.toEqualTypeOf<Environment<SokobanTask>>()
    expectTypeOf(openEnvironment<string>).returns.resolves.toEqualTypeOf<Environment>()
    const wrong = () => [
      // @ts-expect-error: of another type
      openEnvironment("sokoban", { boxes: "2" }),
      // @ts-expect-error: unknown
      openEnvironment("sokoban", { boxs: 2 }),
    ]
    const known = (name: string) => openEnvironment(name, { anything: 2 })
    expect([wrong, known]).toHaveLength(2)
  })

  it.each([
    ["sokobn", '"sokobn"; did you mean "sokoban"?'],
    ["Sokoban2", '"Sokoban2"; did you mean "sokoban"?'],
    ["number_line", '"number_line"; did you mean "number-line"?'],
    ["", 'no environment "". Known: sokoban, '],
    ["constructor", 'no environment "constructor". Known: '],
    ["__proto__", 'no environment "__proto__". Known: '],
  ])("suggests a name for %j where one is near", async (name, message) => {
    await expect(openEnvironment(name)).rejects.toThrow(
      expect.objectContaining({ code: "BAD_CONFIG", message: expect.stringContaining(message) }),
    )
  })
})
