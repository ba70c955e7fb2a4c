import { GigpoError } from "../../util/errors.ts"
import type { Outcome } from "./connection.ts"

type Failure = Exclude<Outcome, { readonly kind: "answered" }>

/** Node's error codes for a failed TLS handshake. */
const tls = /^(EPROTO|ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH)/

/** Whether an error code means a failed TLS handshake. */
export const isTlsError = (code: string | undefined): boolean => tls.test(code ?? "")

/**
 * Returns an explanation of a failed first request that repetition would not fix: a refused connection, an unknown host name, an
 * invalid certificate, another kind of server, or a rejected key. Undefined where a later attempt may succeed.
 *
 * @param keyed whether a key was sent
 */
export function hopeless(failure: Failure, keyed: boolean): string | undefined {
  const { kind, status, reason, code = "" } = failure
  if (code === "ECONNREFUSED") return `${reason}. Nothing listens there: start the server, or correct the address`
  if (code === "ENOTFOUND" || code === "EAI_AGAIN")
    return `${reason}. The host name does not resolve: correct the address, or check the network`
  if (code === "EPROTO" || code === "ERR_SSL_WRONG_VERSION_NUMBER")
    return `the TLS handshake failed (${reason.trim()}). If the server has no TLS, write http:// instead of https://`
  if (isTlsError(code))
    return `its TLS certificate is not accepted: ${reason}. For a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file`
  if (code.startsWith("HPE_"))
    return `its answer is not HTTP (${reason}). Correct the address, or write https:// for a server with TLS`
  if (kind === "not-taken" && status === 0) return `${reason}. Correct the address, or check the network`
  if (status === 401 || status === 403)
    return `it rejects ${keyed ? "the key" : "a request without a key"} (${status}: ${reason}). Set TINKER_API_KEY to a key of this server`
  if (status >= 300 && status < 400) return `it redirects (${status}: ${reason}). Give the address that it redirects to`
  if (status >= 200 && status < 300)
    return `${reason}. It is another kind of server, or the path is wrong${addressForm}`
  if (kind === "refused" && (status === 404 || status === 405))
    return `it has no Tinker API at this address (${status}: ${reason})${addressForm}`
  return undefined
}

const addressForm = ": give only the part before /api/v1, such as https://host:port"

/** Returns an explanation of a first request that was not answered in time. */
export function tooLate({ status, reason, code }: Failure, seconds: number): string {
  const what =
    code === "LATE" ? "it accepts the connection but sends no response" : status === 0 ? reason : `${status}: ${reason}`
  return `${what}, for ${seconds} s. Correct the address, or increase connectTimeout for a server that starts slowly`
}

/** Returns the error of a failed first request, by the status of the response (0 for none). */
export function unusable(url: string, path: string, why: string, status: number): GigpoError {
  const [code, what] =
    status === 0 ? (["ENGINE_LOST", "No engine answers"] as const) : (["ENGINE_REJECTED", "No usable engine"] as const)
  return new GigpoError(code, `${what} at ${url}/api/v1${path}: ${why}.`, { cause: { status } })
}
