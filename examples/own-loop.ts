// A training loop of one's own, of the package's pieces: what `train` does, without its checks, log and checkpoints.
import { gigpo, initializeModel, NativePolicy, Random, rollout, Tokenizer } from "gigpo"
import { toBatch } from "gigpo/advantages"
import { sokoban } from "gigpo/environments/sokoban"
import { accumulateGradients, collectSteps, environmentTasks, miniBatches, toSequences } from "gigpo/loop"
import { clippedSurrogate, composeLoss } from "gigpo/losses"

const [directory, environment] = ["runs/own-loop/model", sokoban({ rules: false, history: 0, thinking: "off" })]
await initializeModel({ directory, environment, overwrite: true })
const policy = await NativePolicy.open(directory)
const tokenizer = await Tokenizer.open(directory)
const [estimator, loss, size] = [gigpo(), composeLoss(clippedSurrogate()), { groups: 8, groupSize: 8 }]
const limits = { maxCompletionTokens: 8, maxSteps: 20, concurrency: 64, temperature: 1, environmentTimeout: 60 }

for (let iteration = 0; iteration < 3; iteration++) {
  const progress = { iteration, iterations: 3 }
  const random = new Random(7).derive("iteration", iteration)
  const tasks = environmentTasks(environment, "train", random.derive("tasks"))
  const play = { policy, tokenizer, environment, tasks, ...size, ...limits, maxPositions: policy.maxPositions }
  const { groups } = await rollout({ ...play, random: random.derive("rollout"), progress })
  const steps = collectSteps(groups.map(({ episodes }) => episodes))
  const credit = await estimator.estimate(toBatch(steps), { progress, random })
  for (const batch of miniBatches([toSequences(steps, credit)], 256, random.derive("batches"))) {
    await accumulateGradients(policy, batch, loss, { progress, random })
    await policy.optimizerStep({ learningRate: 1e-4 })
  }
  const returns = groups.flatMap(({ episodes }) => episodes.map((episode) => episode.return))
  console.log(iteration + 1, returns.reduce((sum, value) => sum + value, 0) / returns.length)
}
await policy.dispose()
await tokenizer.dispose()
