// The gateway of agents in a process of its own, with two episodes: prints its address and a key of each.
import { NativePolicy, Tokenizer } from "gigpo"
import { episodeShare } from "../../dist/agents/episode-share.js"
import { openGateway } from "../../dist/agents/gateway.js"
import { tokenText } from "../../dist/chat/dialect.js"
import { plainGenerator } from "../../dist/chat/plain-generator.js"

const model = process.argv[2]
const tokenizer = await Tokenizer.open(model)
const policy = await NativePolicy.open(model, { training: false })
const gateway = await openGateway()
const keys = [1, 2].map(() => {
  const voice = plainGenerator({
    policy: episodeShare(policy),
    codec: tokenizer,
    temperature: 1,
    maxCompletionTokens: 512,
  })
  return gateway.open({ voice, models: ["policy"], textOf: tokenText(tokenizer) }).apiKey
})
process.stdout.write(`${[gateway.baseURL, ...keys].join("\n")}\n`)
