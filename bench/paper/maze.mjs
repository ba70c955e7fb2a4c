// A maze with a locked door, its key and dead ends, in which a player sees only where it is: an environment of one's own, as
// `environment: { name: ./maze.mjs }` takes it. It has what the paper's worlds have: the only reward is at the end, the limit on
// steps binds, and an episode that finds the way mostly has walked loops before.
import { fields, Random } from "../../modules/entries/index.js"
import { begunAt, breadthFirst, generate, holdsKey, movesOf, neighbour, placeOf } from "./maze-world.mjs"

export const options = {
  size: fields.integer(4, "Places on each side.", { min: 3, max: 9 }),
  loops: fields.integer(0, "Ways beyond those that join every place to every other exactly once.", { min: 0 }),
  mazes: fields.integer(
    0,
    "How many mazes there are, each begun in from any place before its door; 0: every task has its own.",
    {
      min: 0,
    },
  ),
  maxSteps: fields.integer(40, "Steps after which an episode is cut off.", { min: 1 }),
  history: fields.integer(4, "Past steps that the prompt shows: where each was taken, and which way.", { min: 0 }),
  expert: fields.oneOf(
    "explore",
    ["explore", "shortest"],
    "Who is cloned: one that has to find key, door and goal, depth first, or one that knows the map.",
  ),
}

/** @returns an environment whose metrics are `success`; 10 for the goal is its only reward */
export default function maze({ size, loops, mazes, maxSteps, history, expert }) {
  const worldOf = ({ seed, start }) => {
    const world = generate(new Random(seed), { size, loops })
    return start === undefined ? world : begunAt(world, start)
  }
  return {
    name: "maze",
    *tasks(split, random) {
      for (;;)
        yield mazes === 0
          ? { seed: 2 * random.below(2 ** 30) + Number(split === "test") }
          : { seed: random.below(mazes), start: random.below(size * size) }
    },
    async start(task, { signal }) {
      signal.throwIfAborted()
      const world = worldOf(task)
      let [state, steps, over] = [world.start, 0, false]
      return {
        first: observe(world, state),
        async step(action) {
          signal.throwIfAborted()
          if (over) throw new Error("This episode of the maze is over; start a new one.")
          state = movesOf(world, state).get(action) ?? state // what cannot be done here changes nothing
          const terminated = state.place === world.goal
          const truncated = !terminated && ++steps >= maxSteps
          over = terminated || truncated
          const success = Number(terminated)
          return {
            observation: observe(world, state),
            reward: 10 * success,
            terminated,
            truncated,
            metrics: { success },
          }
        },
      }
    },
    prompt(task, turns, now) {
      const past = turns.slice(turns.length - Math.min(history, turns.length))
      const lines = past.map(({ observation, action }) => `${placeOf(observation)} ${action}`)
      const which = mazes === 0 ? [] : [`maze ${task.seed}`]
      return [{ role: "user", content: [...which, ...lines, now.text].join("\n") }]
    },
    parse(reply) {
      const action = reply.trim()
      const valid = actions.includes(action)
      return { action: valid ? action : "wait", valid }
    },
    expert: expert === "explore" ? explorer : (task) => guide(worldOf(task)),
  }
}

const actions = ["north", "east", "south", "west", "take", "open"]

/** "b3: north west, door east, key here" */
function observe(world, state) {
  const { place, held, opened } = state
  const possible = [...movesOf(world, state).keys()]
  const ways = possible.filter((action) => action !== "take" && action !== "open")
  const locked = world.doors.get(place)
  const parts = [
    `${place}: ${ways.join(" ")}`,
    ...(locked && !opened ? [`door ${locked}`] : []),
    ...(holdsKey(world, state) ? ["key here"] : []),
    ...(held ? ["key held"] : []),
  ]
  const anchor = [place, held && "key", opened && "open"].filter(Boolean).join(" ")
  return { text: parts.join(", "), anchor, actions: possible }
}

/** Takes a shortest way through places, key and door. */
function guide(world) {
  const next = (anchor) =>
    [...movesOf(world, stateOf(anchor))].map(([action, state]) => [action, observe(world, state).anchor])
  return {
    reply(now) {
      for (const [anchor, way] of breadthFirst(now.anchor, next)) if (placeOf({ anchor }) === world.goal) return way[0]
      return undefined
    },
  }
}

function stateOf(anchor) {
  const [place, ...facts] = anchor.split(" ")
  return { place, held: facts.includes("key"), opened: facts.includes("open") }
}

/**
 * Knows only what the episode has shown: uses what it finds, goes to a door that it has a key for, else to the nearest place where it
 * has not been. In a maze without loops that is depth-first search.
 */
function explorer() {
  return {
    reply(now, history) {
      const useful = now.actions.find((action) => action === "take" || action === "open")
      if (useful) return useful
      const seen = [...history.map(({ observation }) => observation), now]
      const ways = new Map(seen.map((observation) => [placeOf(observation), observation.actions.filter(isWay)]))
      const next = (place) => (ways.get(place) ?? []).map((way) => [way, neighbour(place, way)])
      const { held, opened } = stateOf(now.anchor)
      const door = held && !opened ? seen.find(({ text }) => text.includes(", door ")) : undefined
      const isWanted = door ? (place) => place === placeOf(door) : (place) => !ways.has(place)
      for (const [place, way] of breadthFirst(placeOf(now), next)) if (isWanted(place)) return way[0]
      return undefined
    },
  }
}

function isWay(action) {
  return action !== "take" && action !== "open"
}
