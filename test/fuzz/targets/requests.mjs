// What requests of the servers look like. @KEY@, @CONTROL@, @HOST@, @SESSION@, @MODEL@ and @SAMPLING@ are places.

const user = { role: "user", content: "Push the box." }
const schema = {
  type: "object",
  properties: { a: { type: "integer", minimum: 1 } },
  required: ["a"],
  additionalProperties: false,
}
const tools = [{ type: "function", function: { name: "f", description: "Does it.", parameters: schema, strict: true } }]
const calls = [{ id: "c1", type: "function", function: { name: "f", arguments: '{"a": 1}' } }]
const tensor = (data, dtype) => ({ data, dtype, shape: [data.length] })
const datum = {
  model_input: { chunks: [{ type: "encoded_text", tokens: [1, 2, 3] }] },
  loss_fn_inputs: { target_tokens: tensor([2, 3, 4], "int64"), weights: tensor([0, 1, 1], "float32") },
}

/** By server: paths, and bodies that they take. */
const posts = {
  gateway: [
    ["/v1/chat/completions", { model: "policy", messages: [user], n: 2, stop: ["x"], logprobs: true, top_logprobs: 2 }],
    [
      "/v1/chat/completions",
      {
        model: "policy",
        messages: [
          user,
          { role: "assistant", content: "", tool_calls: calls },
          { role: "tool", tool_call_id: "c1", content: "2" },
        ],
        tools,
        stream: true,
      },
    ],
    [
      "/v1/chat/completions",
      {
        model: "policy",
        messages: [user],
        response_format: { type: "json_schema", json_schema: { name: "s", schema } },
        seed: 3,
        max_tokens: 4,
      },
    ],
    [
      "/v1/responses",
      {
        model: "policy",
        input: [user],
        instructions: "Be brief.",
        tools: [{ type: "function", ...tools[0].function }],
        max_output_tokens: 4,
      },
    ],
  ],
  control: [
    ["/v1/gigpo/step", { anchor: "a room" }],
    ["/v1/gigpo/reward", { reward: 1, success: true, metrics: { turns: 3 } }],
  ],
  retriever: [
    ["/retrieve", { queries: ["town", "rome"], topk: 2, return_scores: true }],
    ["/retrieve", { query: "town", topk: 1 }],
  ],
  engine: [
    ["/api/v1/create_session", { tags: [], user_metadata: null, sdk_version: "1" }],
    [
      "/api/v1/create_model",
      { session_id: "@SESSION@", model_seq_id: 0, base_model: "tiny", lora_config: { rank: 2, seed: 1 } },
    ],
    ["/api/v1/forward", { model_id: "@MODEL@", seq_id: 1, forward_input: { data: [datum], loss_fn: "cross_entropy" } }],
    [
      "/api/v1/forward_backward",
      {
        model_id: "@MODEL@",
        seq_id: 2,
        forward_backward_input: { data: [datum, datum], loss_fn: "cross_entropy", loss_fn_config: {} },
      },
    ],
    [
      "/api/v1/optim_step",
      { model_id: "@MODEL@", seq_id: 3, adam_params: { learning_rate: 0.001, beta1: 0.9, beta2: 0.95, eps: 1e-8 } },
    ],
    ["/api/v1/create_sampling_session", { session_id: "@SESSION@", sampling_session_seq_id: 1, base_model: "tiny" }],
    [
      "/api/v1/asample",
      {
        sampling_session_id: "@SAMPLING@",
        seq_id: 4,
        num_samples: 2,
        prompt: datum.model_input,
        sampling_params: { max_tokens: 3, temperature: 1, stop: [5] },
        prompt_logprobs: true,
      },
    ],
    ["/api/v1/save_weights", { model_id: "@MODEL@", seq_id: 5, path: "latest" }],
    ["/api/v1/save_weights_for_sampler", { model_id: "@MODEL@", seq_id: 6, path: "s" }],
    [
      "/api/v1/load_weights",
      { session_id: "@SESSION@", model_seq_id: 1, path: "tinker://run/weights/latest", optimizer: true },
    ],
    ["/api/v1/weights_info", { tinker_path: "tinker://run/weights/latest" }],
    ["/api/v1/retrieve_future", { request_id: "forward-1" }],
    ["/api/v1/get_info", { model_id: "@MODEL@" }],
    ["/api/v1/telemetry", { events: [] }],
  ],
}
const gets = {
  gateway: ["/v1/models", "/v1/models/policy"],
  retriever: ["/retrieve"],
  view: ["/", "/api/runs", "/api/runs/x/reports?cursor=1", "/api/runs/x/episodes/1/0"],
  engine: ["/api/v1/healthz", "/api/v1/training_runs", "/api/v1/samplers/x", "/api/v1/training_runs/x/checkpoints", "/api/v1/training_runs/x/checkpoints/weights/latest/archive", "/api/v1/downloads/x"], // biome-ignore format: one line
}

const json = "content-type: application/json\r\nconnection: close\r\n"

/**
 * Bodies alone, whose `head` is written before them with their length, and whole requests.
 *
 * @param filled - fills in the places of a text for a server
 */
export function requests(filled) {
  const head = (method, path, server, key) => {
    const authorization = server === "engine" ? `x-api-key: @${key}@` : `authorization: Bearer @${key}@`
    return filled(server, `${method} ${path} HTTP/1.1\r\nhost: @HOST@\r\n${authorization}\r\n`)
  }
  const posted = Object.entries(posts).flatMap(([name, all]) =>
    all.flatMap(([path, body], at) => {
      const [server, key] = name === "control" ? ["gateway", "CONTROL"] : [name, "KEY"]
      const seed = {
        name: `${path} body ${at}`,
        server,
        head: `${head("POST", path, server, key)}${json}`,
        bytes: Buffer.from(filled(server, JSON.stringify(body))),
      }
      return [seed, { name: `${path} ${at}`, server, bytes: withHead(seed) }]
    }),
  )
  const asked = Object.entries(gets).flatMap(([server, paths]) =>
    paths.map((path) => ({
      name: path,
      server,
      bytes: Buffer.from(`${head("GET", path, server, "KEY")}connection: close\r\n\r\n`),
    })),
  )
  return [...posted, ...asked]
}

/** Bytes of a request; a body alone gets a head that fits it. */
export function withHead({ head, bytes }) {
  return head === undefined
    ? bytes
    : Buffer.concat([Buffer.from(`${head}content-length: ${bytes.length}\r\n\r\n`), bytes])
}
