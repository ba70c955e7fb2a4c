import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { describe, expect, it } from "vitest"
import { Game } from "../../../src/environment/alfworld/game.ts"
import { readGameFile } from "../../../src/environment/alfworld/game-file.ts"
import { domain } from "../../../src/environment/alfworld/generate/domain.ts"
import { grammarText } from "../../../src/environment/alfworld/generate/grammar.ts"
import { present, reason, traces, useArchive } from "./archive.ts"

/** An episode of ALFWorld's own engine; `adm` is the list of commands or the start of its SHA-1. */
interface Recording {
  readonly game: string
  readonly logic: "file" | "0.4.2"
  readonly task: string
  readonly steps: readonly { cmd: string | null; obs: string; adm: string | readonly string[]; won: boolean }[]
}

describe.skipIf(!present)(`rules and grammar of generated households, on original problems${reason}`, () => {
  const data = useArchive()

  it("give the results of ALFWorld's, in both wordings, except for the help text", () => {
    let compared = 0
    for (const line of gunzipSync(readFileSync(traces)).toString().trim().split("\n")) {
      const { game, logic, task, steps } = JSON.parse(line) as Recording
      const path = join(data(), "json_2.1.1", game)
      const { problem } = readGameFile(readFileSync(path, "utf8"), path)
      const wording = logic === "file" ? "put" : "move"
      const world = Game.parse({ domain, grammar: grammarText(task, wording), problem }).start()
      for (const { cmd, obs, adm, won } of steps) {
        const text = cmd === null ? world.text : world.step(cmd)
        // 0.2 has no help, and the words of the help are ours.
        const commands = world.admissible().filter((command) => logic !== "file" || command !== "help")
        const sum = createHash("sha1").update(commands.join("\n")).digest("hex").slice(0, 16)
        const found = { game, cmd, obs: cmd === "help" ? obs : text, adm: typeof adm === "string" ? sum : commands }
        expect({ ...found, won: world.won }).toEqual({ game, cmd, obs, adm, won })
        compared++
      }
    }
    expect(compared).toBe(8055)
  })
})
