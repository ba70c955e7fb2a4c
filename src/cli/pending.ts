import type { RemoteEngine } from "../engine/remote/remote-engine.ts"
import { formatDuration } from "./terminal/format.ts"

/** What an engine elsewhere is doing, or why it does not answer; undefined where nothing was asked of it. */
export function describePending({
  url,
  outage,
  pending,
}: Pick<RemoteEngine, "url" | "outage" | "pending">): string | undefined {
  if (outage) return `the engine at ${url}, which does not answer ${outage.path} (${outage.reason})`
  const [first] = pending
  if (!first) return undefined
  const { path, since, state, reason } = first
  const others = pending.length > 1 ? ` and ${pending.length - 1} more` : ""
  const queue =
    state === undefined || state === "active" ? "" : `; it says ${[state, reason].filter(Boolean).join(": ")}`
  return `the engine at ${url} to do ${path}${others}, asked ${formatDuration((Date.now() - since) / 1000)} ago${queue}`
}
