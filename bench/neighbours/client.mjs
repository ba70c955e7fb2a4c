// Client of `gigpo engine` that samples its base model.

export const tokensOf = (length) => Array.from({ length }, (_, i) => 3 + ((i * 7) % 200))
const prompt = (length) => ({ chunks: [{ type: "encoded_text", tokens: tokensOf(length) }] })

/** Function that sends requests to an engine with its key. */
export function caller(url, key) {
  return async (path, body) => {
    const headers = { "x-api-key": key, "content-type": "application/json" }
    const response = await fetch(`${url}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) })
    const answer = await response.json()
    if (!response.ok && response.status !== 429) throw new Error(`${path}: ${JSON.stringify(answer).slice(0, 300)}`)
    return answer
  }
}

/** Session with a sampler of the base model. `result` submits a request and waits for its result. */
export async function client(post) {
  const { session_id } = await post("/create_session", {})
  const asked = { session_id, base_model: "served", sampling_session_seq_id: 0 }
  const { sampling_session_id } = await post("/create_sampling_session", asked)
  let seq_id = 0
  const result = async (path, body) => {
    const { request_id } = await post(path, body)
    if (request_id === undefined) return undefined
    for (;;) {
      const answer = await post("/retrieve_future", { request_id })
      if (answer.error) throw new Error(`${path}: ${answer.error}`)
      if (answer.type !== "try_again") return answer
    }
  }
  const sample = (length, num_samples, max_tokens, more = {}) =>
    result("/asample", {
      ...{ sampling_session_id, seq_id: seq_id++, num_samples, prompt: prompt(length), ...more },
      sampling_params: { max_tokens },
    })
  return { session_id, result, sample }
}
