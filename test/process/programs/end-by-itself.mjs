// Does some of everything and comes to its end, without dispose().
import { createPolicy, request } from "./model.mjs"

const policy = await createPolicy()
await createPolicy() // one that is never used
const { tokens } = await policy.sample(request)
const row = { prompt: request.prompt, reply: tokens }
await policy.forwardBackward([row], { kind: "clone" })
await policy.optimizerStep({ learningRate: 1e-3 })
// Nobody waits for this one but the process must.
policy.logProbs([row], "current").then(() => console.log("done"))
