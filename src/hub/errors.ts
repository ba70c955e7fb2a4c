import { GigpoError } from "../util/errors.ts"
import { formatHubName, type HubName } from "./names.ts"
import type { HubSettings } from "./settings.ts"

// What goes wrong with the Hub: HUB_LOST is temporary and retried; HUB_REFUSED is permanent.

export function refused(message: string): GigpoError {
  return new GigpoError("HUB_REFUSED", message)
}

/** No answer, half an answer, or a server that is in trouble. */
export function lost(host: string, what: string, cause?: unknown): GigpoError {
  return new GigpoError(
    "HUB_LOST",
    `${host} ${what}. Try again: what was downloaded is kept. Without a network, a model in the cache is used.`,
    { cause },
  )
}

/** Reason why a request got no answer, in words. */
export function networkReason(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  const code = String((inner as { code?: unknown } | undefined)?.code ?? "")
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "is not known to the network: is there a connection"
  if (code === "ECONNREFUSED") return "refuses the connection"
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code)) return `has no certificate that this machine trusts (${code})`
  return `cannot be reached, or the connection broke${code && ` (${code})`}`
}

/** What a server says that does not give a model, as the Hub tells it in headers. */
interface Denial {
  readonly status: number
  readonly headers: Headers
}

/** Error for a status that is no success; one that may change is `HUB_LOST`. */
export function statusError({ status, headers }: Denial, name: HubName, settings: HubSettings): GigpoError {
  const { endpoint, token } = settings
  const { host } = new URL(endpoint)
  const { repository, revision = "main" } = name
  const page = `${endpoint}/${repository}`
  const code = headers.get("x-error-code") ?? ""
  const message = headers.get("x-error-message") ?? ""
  if (status === 408 || status === 429 || status >= 500)
    return lost(host, status === 429 ? "takes no more requests for now (429)" : `answers with an error (${status})`)
  if (/invalid credentials|invalid username or token/i.test(message) && token !== undefined)
    return refused(
      `${host} does not know the access token in HF_TOKEN, or in the file token of HF_HOME: make a new one at ` +
        `${endpoint}/settings/tokens, or unset it for models that are open to all.`,
    )
  if (code === "GatedRepo" || (status === 403 && /gated|restricted/i.test(message)))
    return refused(
      `${repository} is gated. Accept its terms at ${page}` +
        (token === undefined
          ? `, make an access token at ${endpoint}/settings/tokens, and give it in HF_TOKEN (or "hf auth login").`
          : " with the account of your access token; its owner may have to approve it first. A fine-grained token needs the right to read gated repositories."),
    )
  if (code === "RevisionNotFound")
    return refused(`${repository} has no revision ${revision}: ${page}/tree/main lists its branches and tags.`)
  if (code === "EntryNotFound")
    return refused(`${repository}@${revision} lost a file while it was downloaded: try again.`)
  if (status === 403)
    return refused(
      `${host} does not let you read ${repository} (403): ask its owner, or give a token with that right in HF_TOKEN.`,
    )
  if (status === 401 || status === 404 || status === 410)
    return refused(
      `There is no folder ${formatHubName(name)} here and no model of this name at ${host}, or it is private` +
        `${token === undefined ? " (then give an access token in HF_TOKEN)" : ""}.`,
    )
  return refused(`${host} refuses to give ${repository} (status ${status}).`)
}

/** For an answer that no honest server gives, or that this version cannot read. */
export function badAnswer(host: string, what: string): GigpoError {
  return refused(`${host} gives an answer that is refused: ${what}. Nothing of it was kept; is HF_ENDPOINT right?`)
}
