import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import { openenv } from "../../src/environment/openenv/openenv.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { takeTasks } from "../../src/rollout/tasks.ts"
import { Random } from "../../src/util/random.ts"
import { expectNo, rolloutSetup, useTokenizer } from "./setup.ts"

// An environment in a process of its own may end that process: it costs the episodes that were in it and those that follow.

const tokenizer = useTokenizer()

expectNo("unhandledRejection")

const program = fileURLToPath(new URL("../process/programs/openenv-server.mjs", import.meta.url))

it.each([
  ["exit", 3, null],
  ["memory", null, "SIGABRT"],
])("an environment's process that ends by %s", async (end, code, signal) => {
  const child = spawn(process.execPath, ["--max-old-space-size=32", program, end], {
    stdio: ["ignore", "pipe", "ignore"],
  })
  const ended = once(child, "exit")
  try {
    const [port] = await once(child.stdout, "data")
    const environment = openenv({ url: `http://127.0.0.1:${String(port).trim()}`, actionField: "command" })
    const random = new Random(7)
    const tasks = takeTasks(environment, "train", random, 3)
    const { environment: _, hooks: __, agentLoop: ___, ...setup } = rolloutSetup(tokenizer.get())
    const { groups } = await rollout({
      ...setup,
      maxPositions: 2000,
      environment,
      tasks,
      groupSize: 2,
      concurrency: 1,
      maxRetries: 1,
    })
    const episodes = groups.flatMap((group) => group.episodes)
    expect(episodes.map(({ outcome }) => outcome)).toEqual(["terminated", "terminated", ...Array(4).fill("failed")])
    for (const { error } of episodes.slice(2))
      expect(error).toMatchObject({ code: "ENVIRONMENT_FAILED", message: expect.stringContaining("openenv") })
    expect((await ended).map((value) => value ?? null)).toEqual([code, signal])
  } finally {
    child.kill("SIGKILL")
  }
})
