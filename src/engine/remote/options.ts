import { boolean, integer, number, oneOf, required, string } from "../../options/field.ts"
import { leastPositions } from "../check-arguments.ts"

/** What opens a remote engine, but for the key, which belongs into no file. */
export const remoteFields = {
  url: required(string(undefined, "Where the server of the Tinker API is: https://host:port, before /api/v1.")),
  model: string(undefined, "What the server calls the model.", { defaultText: "the only one that it has" }),
  rank: integer(32, "Rank of the adapter that is trained; 0 trains the whole model, where the server can.", { min: 0 }),
  from: string(undefined, "Saved weights to begin with, as the server named them: tinker://…", {
    defaultText: "what remote.json in the model's folder names, or the server's model with a new adapter",
  }),
  plainHttp: boolean(false, "Whether the key may be sent to another machine over http, which is not encrypted."),
  wire: oneOf(undefined, ["protobuf", "json"], "How calls of training travel.", {
    defaultText: '"protobuf" where the server takes it',
  }),
  patience: number(
    300,
    "Seconds in which the server must take a request, or answer a question about its result, over all attempts.",
    { above: 0 },
  ),
  contact: number(10, "Seconds in which the server must answer for the first time, as a run begins.", { above: 0 }),
  deadline: number(3600, "Seconds in which it must have done what it took, its own pauses included.", { above: 0 }),
}

/** What `RemoteEngine.open` takes besides. */
export const openFields = {
  ...remoteFields,
  key: string(undefined, "Sent to the server, and kept nowhere.", { defaultText: "TINKER_API_KEY of the environment" }),
  seed: integer(0, "Seeds the adapter's first values.", { min: 0 }),
  maxPositions: integer(undefined, "Longest sequence, prompt and reply together.", {
    min: leastPositions,
    defaultText: "the model's own limit, or the server's where that is less",
  }),
}
