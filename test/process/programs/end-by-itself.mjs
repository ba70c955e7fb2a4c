// Does some of everything and comes to its end, without dispose().
import { createPolicy, request, stepSequence } from "./model.mjs"

const policy = await createPolicy()
// One that is never used. Both are kept, so that it is not the garbage collector that lets the process end.
globalThis.kept = [policy, await createPolicy()]
const { tokens } = await policy.sample(request)
const row = stepSequence(request.prompt, tokens)
await policy.forwardBackward([row], { kind: "cross-entropy" })
await policy.optimizerStep({ learningRate: 1e-3 })
// Nobody waits for this one but the process must.
policy.logProbs([row]).then(() => console.log("done"))
