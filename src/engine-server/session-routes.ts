import { ApiError } from "../chat/api-error.ts"
import { version as packageVersion } from "../util/version.ts"
import type { Routes } from "./paths.ts"
import { readFields } from "./read-body.ts"
import type { Serving } from "./serving.ts"

/** Returns the routes of server information and sessions. */
export function sessionRoutes({ options, departures, sessions }: Serving): Routes {
  const { model: model_name, maxPositions: max_context_length } = options
  const capabilities = async () => ({
    supported_models: [{ model_name, max_context_length, trainable: true, sampleable: true }],
  })
  return {
    "POST /client/config": async () => ({
      pjwt_auth_enabled: false,
      ...(!departures.has("not-ours") && { gigpo: { version: packageVersion } }),
    }),
    "POST /client/dynamic_config": async () => ({ refresh_interval_sec: 300, sample_cancel_enabled: false }),
    "GET /get_server_capabilities": capabilities,
    "POST /get_server_capabilities": capabilities,
    "POST /telemetry": async () => ({ status: "accepted" }),
    "POST /create_session": async ({ request, address }) => {
      const { id } = sessions.begin(address, request.headers.get("x-idempotency-key") ?? undefined)
      return { type: "create_session", session_id: id }
    },
    "POST /session_heartbeat": async (received) => {
      const id = (await readFields(received)).required("session_id")
      if (!sessions.has(id)) throw new ApiError(410, "The session has ended.")
      sessions.find(id)
      return { type: "session_heartbeat" }
    },
    "POST /sessions/:id/finish": async (_, id) => {
      await sessions.end(sessions.find(id!))
      return { type: "finish_session" }
    },
  }
}
