import { createServer, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { afterEach } from "vitest"
import type { EnvironmentEpisode } from "../../../src/environment/environment.ts"
import { openenv } from "../../../src/environment/openenv/openenv.ts"
import type { OpenEnvOptions } from "../../../src/environment/openenv/options.ts"
import { Random } from "../../../src/util/random.ts"
import { type ServerOptions, startServer, type TestServer } from "./server.ts"

// Servers that end with the test that started them.
export const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

export async function serve(options: ServerOptions = {}): Promise<TestServer> {
  const server = await startServer(options)
  stops.push(server.stop)
  return server
}

/** A TCP server that is no OpenEnv server. */
export async function listen(handle: (socket: Socket) => void): Promise<string> {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on("error", () => {})
    handle(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  stops.push(async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

export function start(
  options: OpenEnvOptions,
  seed = 7,
  signal: AbortSignal = new AbortController().signal,
): Promise<EnvironmentEpisode> {
  return openenv(options).start({ seed }, { signal, random: new Random(1) })
}

/** Waits until the server has seen all connections end. */
export async function released(server: TestServer): Promise<void> {
  while (server.used().now > 0) await sleep(5)
}

export const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length
export const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length
