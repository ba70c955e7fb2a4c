import type { RemoteEngine } from "../engine/remote/remote-engine.ts"
import { formatDuration } from "./terminal/format.ts"

/** Current request of a remote engine, or why the engine does not answer. Undefined without a pending request. */
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
    state === undefined || state === "active" ? "" : `; server state: ${[state, reason].filter(Boolean).join(": ")}`
  return `the engine at ${url}: ${path}${others}, requested ${formatDuration((Date.now() - since) / 1000)} ago${queue}`
}
