// Ways on a line from 0 to 6, one step for each completion: "+" or "-". A program can play them (agent.mjs), which gets its task as JSON; start,
// prompt and parse play the same in gigpo's own loop, and with the expert give a small model something to begin with.

const turns = 8
const numbers = [0, 1, 2, 3, 4, 5, 6]
const ways = numbers.flatMap((from) => numbers.filter((to) => to !== from).map((to) => ({ from, to })))

/** Number after a completion: one that is neither leaves it as it is. */
const moved = (at, completion) => Math.min(Math.max(at + (completion === "+" ? 1 : completion === "-" ? -1 : 0), 0), 6)

export default {
  name: "line",
  *tasks(split, random) {
    if (split === "test") yield* ways
    else for (;;) yield ways[random.below(ways.length)]
  },
  async start({ from, to }) {
    let [at, taken] = [from, 0]
    const observe = () => ({ text: `${at} to ${to}`, anchor: `${at} to ${to}` })
    return {
      first: observe(),
      async step(action) {
        at = moved(at, action)
        const success = Number(at === to)
        const truncated = !success && ++taken === turns
        return { observation: observe(), reward: success, terminated: success === 1, truncated, metrics: { success } }
      },
    }
  },
  prompt: (_task, _history, now) => [{ role: "user", content: now.text }],
  parse: (completion) =>
    /^[+-]$/.test(completion) ? { action: completion, valid: true } : { action: "", valid: false },
  expert: ({ to }) => ({ complete: ({ text }) => (Number.parseInt(text, 10) < to ? "+" : "-") }),
}
