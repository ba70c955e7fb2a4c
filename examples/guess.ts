import type { Environment } from "gigpo"
import { checkEnvironment, evaluate, initializeModel, NativePolicy, sft, Tokenizer, train } from "gigpo"

/** Guess a number from 1 to 30 in five guesses; each wrong one is answered with what the number can still be. */
const guess: Environment<{ secret: number }> = {
  name: "guess",
  // Endless or finite; the same random must give the same tasks. A larger world keeps some for the split "test".
  *tasks(_split, random) {
    for (;;) yield { secret: 1 + random.below(30) }
  },
  // What happens depends on the task, the actions and context.random alone. Equal anchors mean: the same state.
  async start({ secret }, { signal }) {
    signal.throwIfAborted() // Ctrl-C, or a time limit
    let [low, high, guesses] = [1, 30, 0]
    const observe = () => ({ text: `from ${low} to ${high}`, anchor: `${low} ${high}` })
    return {
      first: observe(),
      async step(action) {
        signal.throwIfAborted()
        const number = Number(action)
        if (number < secret) low = Math.max(low, number + 1)
        if (number > secret) high = Math.min(high, number - 1)
        const terminated = number === secret
        const truncated = !terminated && ++guesses === 5
        const [reward, metrics] = [terminated ? 10 : 0, { success: terminated ? 1 : 0 }]
        return { observation: observe(), reward, terminated, truncated, metrics }
      },
    }
  },
  prompt: (_task, _history, now) => [{ role: "user", content: `A number ${now.text}. Your guess?` }],
  parse(completion) {
    const number = completion.match(/\d+/)?.[0]
    return { action: number ?? "0", valid: number !== undefined }
  },
  // Optional: an expert, for small models that are trained from scratch.
  expert: () => ({
    complete({ anchor }) {
      const [low, high] = anchor.split(" ").map(Number) as [number, number]
      return String(Math.floor((low + high) / 2))
    },
  }),
}

await checkEnvironment(guess) // throws at the first violated requirement
const [directory, environment] = ["runs/guess/model", guess]
await initializeModel({ directory, environment, overwrite: true })
const optimizer = { learningRate: 1e-3 } // larger than its default: these are few steps
const policy = await NativePolicy.open(directory)
const tokenizer = await Tokenizer.open(directory)
await sft({ policy, tokenizer, environment, tasks: 30, epochs: 5, completionsPerUpdate: 16, optimizer })

const rollout = { maxCompletionTokens: 4 }
const options = { iterations: 30, groups: 48, stepsPerUpdate: 1024, rollout, optimizer: { learningRate: 2e-4 } }
for await (const { iteration, metrics } of train({ policy, tokenizer, environment, ...options })) {
  console.log(iteration, metrics["episode/success"])
}
console.log(await evaluate({ policy, tokenizer, environment, rollout })) // typical success rate: 85 to 100 %
