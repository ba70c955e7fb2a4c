import { number, oneOf, required, text, whole } from "../../options/field.ts"
import { leastPositions } from "../check-arguments.ts"

/** What opens a remote engine, but for the key, which belongs into no file. */
export const remoteFields = {
  url: required(text(undefined, "Where the server of the Tinker API is: https://host:port, before /api/v1.")),
  model: text(undefined, "What the server calls the model.", { otherwise: "the only one that it has" }),
  rank: whole(32, "Rank of the adapter that is trained; 0 trains the whole model, where the server can.", { least: 0 }),
  from: text(undefined, "Saved weights to begin with, as the server named them: tinker://…", {
    otherwise: "what remote.json in the model's folder names, or the server's model with a new adapter",
  }),
  wire: oneOf(undefined, ["protobuf", "json"], "How calls of training travel.", {
    otherwise: '"protobuf" where the server takes it',
  }),
  patience: number(
    300,
    "Seconds in which the server must take a request, or answer a question about its result, over all attempts.",
    { above: 0 },
  ),
  deadline: number(3600, "Seconds in which it must have done what it took, its own pauses included.", { above: 0 }),
}

/** What `RemoteEngine.open` takes besides. */
export const openFields = {
  ...remoteFields,
  key: text(undefined, "Sent to the server, and kept nowhere.", { otherwise: "TINKER_API_KEY of the environment" }),
  seed: whole(0, "Seeds the adapter's first values.", { least: 0 }),
  maxPositions: whole(undefined, "Longest sequence, prompt and reply together.", {
    least: leastPositions,
    otherwise: "the model's own limit, or the server's where that is less",
  }),
}
