import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Command } from "commander"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { retrieverCommand } from "../../src/cli/commands/retriever.ts"

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-retriever-"))
})
afterEach(async () => {
  vi.restoreAllMocks()
  await rm(folder, { recursive: true })
})

it.each([
  ["--topk", "0", "from 1 to 1000"],
  ["--topk", "1001", "from 1 to 1000"],
  ["--port", "65536", "from 0 to 65535"],
])("rejects %s %s before it reads anything", async (option, value, range) => {
  const written = vi.spyOn(process.stderr, "write").mockReturnValue(true)
  const command = retrieverCommand(new Command()).exitOverride()
  await expect(command.parseAsync(["nowhere.jsonl", option, value], { from: "user" })).rejects.toMatchObject({
    code: "commander.invalidArgument",
  })
  expect(written.mock.calls.join("")).toContain(`It must be an integer ${range}.`)
})

it("prints why a search failed, with visible control characters; the client does not get the reason", async () => {
  const corpus = join(folder, "a\x1b[2J.jsonl")
  await writeFile(corpus, '{"contents": "velan bay"}')
  const printed: string[] = []
  vi.spyOn(process.stderr, "write").mockImplementation((text) => printed.push(String(text)) > 0)
  const url = new Promise<string>((resolve) => {
    vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      resolve(String(text).trim())
      return true
    })
  })
  const running = retrieverCommand(new Command()).parseAsync([corpus, "--port", "0"], { from: "user" })
  await Promise.race([url, running])
  await rm(corpus)
  const headers = { "content-type": "application/json" }
  const response = await fetch(await url, { method: "POST", body: '{"query": "velan"}', headers })
  expect([response.status, await response.json()]).toEqual([500, { error: "The search failed." }])
  process.emit("SIGINT")
  await running
  expect(printed.join("")).toMatch(
    /^gigpo: Passages of .*a\\x1b\[2J\.jsonl cannot be read again.*\[IO\] \(cause: ENOENT/m,
  )
  expect(printed.join("")).not.toContain("\x1b")
})
