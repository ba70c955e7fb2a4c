import { execFile } from "node:child_process"
import { readdirSync, statSync } from "node:fs"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { tokenizerFolder } from "./scratch.ts"

const built = new URL("../../modules/tokenizer/", import.meta.url)
const source = new URL("../../src/tokenizer/", import.meta.url)

/** Node 20 cannot run src, and an old build would test old code. */
const upToDate = readdirSync(source).every((name) => {
  const js = statSync(new URL(name.replace(/\.ts$/, ".js"), built), { throwIfNoEntry: false })
  return js !== undefined && js.mtimeMs >= statSync(new URL(name, source)).mtimeMs
})

describe.skipIf(!upToDate)(
  "the built tokenizer (skipped where `npm run build` has not been run since the last change)",
  () => {
    it("renders from dist and does not keep its process alive", async () => {
      const program = `
      import { Tokenizer } from ${JSON.stringify(new URL("tokenizer.js", built).href)}
      const tokenizer = await Tokenizer.open(process.argv[1])
      console.log(JSON.stringify(await tokenizer.renderChat([{ role: "user", content: "hi" }])))`
      const options = { timeout: 240_000 }
      const directory = await tokenizerFolder()
      const run = promisify(execFile)(process.execPath, ["--input-type=module", "-e", program, directory], options)
      // A process that had to be killed at the time limit rejects.
      expect((await run).stdout).toBe(`"<|im_start|>user\\nhi<|im_end|>\\n<|im_start|>assistant\\n"\n`)
    })
  },
)
