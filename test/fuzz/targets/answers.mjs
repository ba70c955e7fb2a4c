// Answers of servers that the package is a client of: listings of a model hub, and frames of an OpenEnv server.
import { readFrame } from "../../../modules/environment/openenv/frames.js"
import { parseListing } from "../../../modules/hub/listing.js"

const sha = "0123456789abcdef0123456789abcdef01234567"
const siblings = [
  { rfilename: "config.json", size: 600, blobId: sha },
  {
    rfilename: "original/model.safetensors",
    size: 134,
    blobId: sha,
    lfs: { size: 2 ** 33, sha256: sha.padEnd(64, "0") },
  },
  { rfilename: "README.md" },
]
const observation = { observation: { board: [0, 1, 2], text: "a room" }, reward: null, done: false }
const errors = [{ type: "missing", loc: ["action", "move"], msg: "Field required", input: {} }]

const readers = {
  listing: (text) => parseListing(text, "hub.example"),
  frame: (text) => readFrame(text),
}

export async function prepare() {
  const values = [
    ["listing", { id: "a/b", sha, siblings }],
    ["frame", { type: "observation", data: observation }],
    ["frame", { type: "error", data: { message: "Wrong", code: "VALIDATION_ERROR", errors } }],
  ]
  return {
    seeds: values.map(([name, value]) => ({ name, bytes: Buffer.from(JSON.stringify(value)) })),
    run: ({ name, bytes }) => void readers[name](bytes.toString("utf8")),
  }
}
