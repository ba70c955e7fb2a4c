import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { Agent, request } from "node:http"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built } from "../cli/gigpo.ts"
import { makeSmallModel } from "./small-model.ts"

const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url))
const runs = built && process.platform !== "win32"

describe.skipIf(!runs)("gigpo engine with few file descriptors (needs dist: npm run build:ts)", () => {
  let folder: string
  let model: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-descriptors-"))
    model = await makeSmallModel(folder)
  })
  afterAll(() => rm(folder, { recursive: true }))

  it("saves weights while 1,300 connections are idle", async () => {
    const words = [main, "engine", model, "--name", "small", "--port", "0", "--checkpoints", join(folder, "kept")]
    const command = ["-c", 'ulimit -n 1024; exec "$@"', "sh", process.execPath, ...words]
    const child = spawn("sh", command, { stdio: ["ignore", "pipe", "ignore"] })
    const idle: Socket[] = []
    try {
      let told = ""
      for await (const chunk of child.stdout.setEncoding("utf8")) {
        told += chunk
        if (told.split("\n").length > 2) break
      }
      const [address = "", key = ""] = told.split("\n")
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const post = async (path: string, body: object) => {
        const headers = { "x-api-key": key, "content-type": "application/json" }
        const asked = request(`${address}/api/v1${path}`, { method: "POST", agent, headers })
        asked.end(JSON.stringify(body))
        const [response] = await once(asked, "response")
        let text = ""
        for await (const chunk of response.setEncoding("utf8")) text += chunk
        return JSON.parse(text) as Record<string, string>
      }
      const result = async (path: string, body: object) =>
        await post("/retrieve_future", { request_id: (await post(path, body)).request_id })
      const { session_id } = await post("/create_session", {})
      const asked = { session_id, base_model: "small", lora_config: { rank: 4 } }
      const { model_id } = await result("/create_model", asked)
      const { port } = new URL(address)
      for (let i = 0; i < 1300; i++) {
        const socket = connect(Number(port), "127.0.0.1")
        socket.on("error", () => {})
        socket.write(`GET /api/v1/healthz HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`)
        idle.push(socket)
        if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 10))
      }
      for (const name of ["one", "two"]) {
        const saved = await result("/save_weights", { model_id, seq_id: name === "one" ? 1 : 2, path: name })
        expect(saved).toMatchObject({ type: "save_weights", path: `tinker://${model_id}/weights/${name}` })
      }
      agent.destroy()
    } finally {
      for (const socket of idle) socket.destroy()
      child.kill("SIGKILL")
      await once(child, "exit")
    }
  })
})
