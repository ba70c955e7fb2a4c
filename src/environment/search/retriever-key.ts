/** Environment variable with the key of a retrieval server, for the server and for its clients. */
export const retrieverKeyVariable = "GIGPO_RETRIEVER_KEY"
const addressVariable = "GIGPO_RETRIEVER_URL"

const loopback: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])

/**
 * Key that is sent to a retrieval server: `GIGPO_RETRIEVER_KEY`, where the server is on this machine or is the one that
 * `GIGPO_RETRIEVER_URL` names. A configuration that comes with a run of another person cannot send it elsewhere.
 */
export function retrieverKey(url: string): string | undefined {
  const { [retrieverKeyVariable]: key, [addressVariable]: named } = process.env
  const { origin, hostname } = new URL(url)
  const trusted =
    loopback.has(hostname) || (named !== undefined && URL.canParse(named) && new URL(named).origin === origin)
  return trusted ? key : undefined
}
