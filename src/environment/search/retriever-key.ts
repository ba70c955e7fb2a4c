/** Environment variable with the key of a retrieval server, for server and clients. */
export const retrieverKeyVariable = "GIGPO_RETRIEVER_KEY"
const addressVariable = "GIGPO_RETRIEVER_URL"

const loopback: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])

/**
 * Key that is sent to a retrieval server: `GIGPO_RETRIEVER_KEY`, if the server is on this machine or has the origin of
 * `GIGPO_RETRIEVER_URL`. So the configuration of another person's run cannot send the key elsewhere.
 */
export function retrieverKey(url: string): string | undefined {
  const { [retrieverKeyVariable]: key, [addressVariable]: named } = process.env
  const { origin, hostname } = new URL(url)
  const trusted =
    loopback.has(hostname) || (named !== undefined && URL.canParse(named) && new URL(named).origin === origin)
  return trusted ? key : undefined
}
