import { GigpoError } from "../util/errors.ts"
import { formatHubName, type HubName } from "./names.ts"
import type { HubSettings } from "./settings.ts"

// Errors of requests to the Hub: HUB_LOST is temporary and retried; HUB_REJECTED is permanent.

export function refused(message: string): GigpoError {
  return new GigpoError("HUB_REJECTED", message)
}

/** Error for a missing or incomplete response, or a temporary error of the server. */
export function lost(host: string, what: string, cause?: unknown): GigpoError {
  return new GigpoError(
    "HUB_LOST",
    `${host} ${what}. Try again: downloaded data is kept. Without a network, a model in the cache is used.`,
    { cause },
  )
}

/** Returns the cause of the cause …, which names what happened: errors of fetch() say only that it failed. */
export function innermost(cause: unknown): unknown {
  for (let depth = 0; depth < 8 && cause instanceof Error && cause.cause instanceof Error; depth++) cause = cause.cause
  return cause
}

/** Returns the reason of a failed request, as the predicate of a sentence about the host. */
export function networkReason(cause: unknown): string {
  const inner = innermost(cause)
  const code = String((inner as { code?: unknown } | undefined)?.code ?? "")
  if (code === "ENOTFOUND" || code === "EAI_AGAIN")
    return "cannot be resolved to an address (is there a network connection? A proxy is named by HTTPS_PROXY)"
  if (code === "ECONNREFUSED") return "refuses the connection"
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code))
    return `has a certificate that this machine does not trust (${code})`
  return `cannot be reached, or the connection was interrupted${code && ` (${code})`}`
}

/** Response of a server that rejects a model. The Hub gives the reason in headers. */
interface Denial {
  readonly status: number
  readonly headers: Headers
}

/**
 * Returns the error for an HTTP status other than success: `HUB_LOST` for a temporary status, otherwise `HUB_REJECTED`.
 *
 * @param wish - how long the server requests to wait, as the end of a sentence.
 */
export function statusError({ status, headers }: Denial, name: HubName, settings: HubSettings, wish = ""): GigpoError {
  const { endpoint, token } = settings
  const { host } = new URL(endpoint)
  const { repository, revision = "main" } = name
  const page = `${endpoint}/${repository}`
  const code = headers.get("x-error-code") ?? ""
  const message = headers.get("x-error-message") ?? ""
  if (status === 408 || status === 429 || status >= 500)
    return lost(
      host,
      `${status === 429 ? "limits the number of requests" : "answers with an error"} (${status})${wish}`,
    )
  if (/invalid credentials|invalid username or token/i.test(message) && token !== undefined)
    return refused(
      `${host} rejects the access token from HF_TOKEN or the file "token" in HF_HOME: create a new one at ` +
        `${endpoint}/settings/tokens, or unset it for public models.`,
    )
  if (code === "GatedRepo" || (status === 403 && /gated|restricted/i.test(message)))
    return refused(
      `${repository} is gated. Accept its terms at ${page}` +
        (token === undefined
          ? `, create an access token at ${endpoint}/settings/tokens, and set HF_TOKEN to it (or run "hf auth login").`
          : " with the account of your access token; the owner may have to approve it first. " +
            "A fine-grained token needs the permission to read gated repositories."),
    )
  if (code === "RevisionNotFound")
    return refused(`${repository} has no revision ${revision}: ${page}/tree/main lists its branches and tags.`)
  if (code === "EntryNotFound")
    return refused(`A file of ${repository}@${revision} was removed during the download: try again.`)
  if (status === 403)
    return refused(
      `${host} denies access to ${repository} (403): ask its owner, or set HF_TOKEN to a token with read access.`,
    )
  if (status === 401 || status === 404 || status === 410)
    return refused(
      `There is no local folder ${formatHubName(name)} and no model of this name at ${host}, or it is private` +
        `${token === undefined ? " (in that case, set HF_TOKEN to an access token)" : ""}.`,
    )
  return refused(`${host} denies access to ${repository} (status ${status}).`)
}

/** Error for a response that a correct server does not send, or that this version cannot read. */
export function badAnswer(host: string, what: string): GigpoError {
  return refused(`${host} sent an invalid response: ${what}. The data was discarded; check HF_ENDPOINT.`)
}
