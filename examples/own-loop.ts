// A training loop of one's own, of the package's pieces: what `train` does, without its checks, log and checkpoints.
import * as gigpo from "gigpo"

const [directory, environment] = ["runs/own-loop/model", gigpo.sokoban({ rules: false, history: 0, thinking: "off" })]
await gigpo.initialize({ directory, environment, overwrite: true })
const policy = await gigpo.NativePolicy.open(directory)
const tokenizer = await gigpo.Tokenizer.open(directory)
const [estimator, loss, size] = [
  gigpo.gigpo(),
  gigpo.composeLoss(gigpo.clippedSurrogateLoss()),
  { groups: 8, groupSize: 8 },
]
const limits = { maxReplyTokens: 8, maxSteps: 20, concurrency: 64, temperature: 1, environmentTimeout: 60 }

for (let iteration = 0; iteration < 3; iteration++) {
  const moment = { iteration, iterations: 3 }
  const random = new gigpo.Random(7).fork("iteration", iteration)
  const tasks = gigpo.environmentTasks(environment, "train", random.fork("tasks"))
  const play = { policy, tokenizer, environment, tasks, ...size, ...limits, maxPositions: policy.maxPositions }
  const { groups } = await gigpo.rollout({ ...play, random: random.fork("rollout"), moment })
  const steps = gigpo.collectSteps(groups.map(({ episodes }) => episodes))
  const credit = await estimator.estimate(gigpo.batchOf(steps), { moment, random })
  for (const batch of gigpo.batches([gigpo.toRows(steps, credit)], 256, random.fork("batches"))) {
    await gigpo.accumulate(policy, batch, loss, { moment, random })
    await policy.optimizerStep({ learningRate: 1e-4 })
  }
  const returns = groups.flatMap(({ episodes }) => episodes.map((episode) => episode.return))
  console.log(iteration + 1, returns.reduce((sum, value) => sum + value, 0) / returns.length)
}
await policy.dispose()
await tokenizer.dispose()
