// What runs that are compared have in common: a start from the expert's moves, and how their learning is measured.
import { rm } from "node:fs/promises"
import { clone, initialize, NativePolicy, Tokenizer, train } from "gigpo"

/** A new model that has learned a little from the expert: what `gigpo init` and `gigpo clone` make. */
export async function warmStart(directory, environment, config, seed, say) {
  const made = `${directory}-new`
  await initialize({ directory: made, environment, options: { ...config.initialize, seed }, overwrite: true })
  const { policy, tokenizer, close } = await openModel(made)
  const setup = { policy, tokenizer, environment, ...config.clone, seed }
  for await (const { epoch, epochs, loss, rows } of clone(setup))
    say(`cloning, pass ${epoch} of ${epochs} over ${rows} steps: loss ${loss.toFixed(3)}`)
  await rm(directory, { recursive: true, force: true })
  await policy.save(directory, { files: tokenizer.files })
  await close()
  await rm(made, { recursive: true })
}

/** Trains the model of a folder; every report of the training. */
export async function learn(directory, environment, training, onReport, policyOptions = {}) {
  const { policy, tokenizer, close } = await openModel(directory, policyOptions)
  const reports = []
  try {
    for await (const report of train({ policy, tokenizer, environment, ...training })) {
      reports.push(report)
      onReport?.(report)
    }
  } finally {
    await close()
  }
  return reports
}

/** Success on held-out tasks where it was measured: [iteration, share] pairs. */
export function curveOf(reports) {
  return reports
    .filter(({ evaluation }) => evaluation)
    .map(({ iteration, evaluation }) => [iteration, evaluation.success])
}

async function openModel(directory, options) {
  const policy = await NativePolicy.open(directory, options)
  const tokenizer = await Tokenizer.open(directory)
  const close = async () => {
    await policy.dispose()
    await tokenizer.dispose()
  }
  return { policy, tokenizer, close }
}
