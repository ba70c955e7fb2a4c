import { resolveModel } from "../../src/hub/resolve-model.ts"

// A process of its own that downloads a model and prints the progress, and at last the path.

const path = await resolveModel(process.argv[2]!, {
  onProgress: (progress) => process.stdout.write(`${JSON.stringify(progress)}\n`),
})
process.stdout.write(`${JSON.stringify({ path })}\n`)
