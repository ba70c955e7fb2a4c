// Gateway of agents in a separate process with two episodes. Prints its address and a key of each episode.

import { episodeShare } from "../../modules/agents/episode-share.js"
import { openGateway } from "../../modules/agents/gateway.js"
import { tokenText } from "../../modules/chat/dialect.js"
import { plainGenerator } from "../../modules/chat/plain-generator.js"
import { NativePolicy, Tokenizer } from "../../modules/entries/index.js"

const model = process.argv[2]
const tokenizer = await Tokenizer.open(model)
const policy = await NativePolicy.open(model, { training: false })
const gateway = await openGateway()
const keys = [1, 2].map(() => {
  const generator = plainGenerator({
    policy: episodeShare(policy),
    codec: tokenizer,
    temperature: 1,
    maxCompletionTokens: 512,
  })
  return gateway.open({ generator, models: ["policy"], textOf: tokenText(tokenizer) }).apiKey
})
process.stdout.write(`${[gateway.baseURL, ...keys].join("\n")}\n`)
