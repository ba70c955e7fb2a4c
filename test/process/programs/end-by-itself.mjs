// Does some of everything and comes to its end, without dispose().
import { createPolicy, request } from "./model.mjs"

const policy = await createPolicy()
// One that is never used. Both are kept, so that it is not the garbage collector that lets the process end.
globalThis.kept = [policy, await createPolicy()]
const { tokens } = await policy.sample(request)
const row = { prompt: request.prompt, reply: tokens }
await policy.forwardBackward([row], { kind: "clone" })
await policy.optimizerStep({ learningRate: 1e-3 })
// Nobody waits for this one but the process must.
policy.logProbs([row], "current").then(() => console.log("done"))
