import { NumpyRandom, PythonRandom } from "../mersenne-twister.ts"
import { Cell, directions, isFree, offset, type Room } from "./room.ts"

/**
 * Options of the room generator. The generator is gym-sokoban's in the variant of RAGEN and verl-agent, and gives the same room for the
 * same seed. A room is dug by a random walk. Targets are placed with a box on each. Then the room is played backwards by pulling boxes
 * away from the targets.
 */
export interface RoomOptions {
  readonly size: readonly [height: number, width: number]
  readonly boxes: number
  readonly searchDepth: number
}

const tries = 4
const maxStates = 300_000

/** Room of a seed (0 … 2^32 - 1), or the message of gym-sokoban's error if the seed gives no room. */
export function generateRoom(seed: number, options: RoomOptions): Room | string {
  const [height, width] = options.size
  const python = new PythonRandom(seed)
  const numpy = new NumpyRandom(seed)
  for (let i = 0; i < tries; i++) {
    const structure = dig(python, height, width)
    const free = structure.filter((cell) => cell === Cell.floor).length
    if (free <= options.boxes + 1) {
      return `Not enough free spots (#${free}) to place 1 player and ${options.boxes} boxes.`
    }
    const player = place(numpy, structure, options.boxes)
    const start = playBackwards(structure, player, width, options.searchDepth)
    if (start.distance === 0) continue
    start.player = wander(python, start, structure, width)
    return { height, width, cells: draw(structure, start) }
  }
  return "Generated Model with score == 0"
}

/** Floor and walls, dug by a random walk that opens a few cells around each position. */
function dig(random: PythonRandom, height: number, width: number): Uint8Array {
  // biome-ignore format: one line
  const headings = [[1, 0], [0, 1], [-1, 0], [0, -1]] as const
  // Cells of a 3×3 window that a step opens, as (row, column).
  // biome-ignore format: one mask a line
  const masks = [
    [[1, 0], [1, 1], [1, 2]],
    [[0, 1], [1, 1], [2, 1]],
    [[1, 0], [1, 1], [2, 1]],
    [[1, 0], [1, 1], [2, 0], [2, 1]],
    [[1, 1], [1, 2], [2, 1]],
  ] as const
  const one = <T>(items: readonly T[]) => random.sample(items, 1)[0]!
  const clamp = (value: number, last: number) => Math.max(Math.min(value, last - 1), 1)

  const cells = new Uint8Array(height * width)
  let heading = one(headings)
  let row = random.randint(1, height - 1)
  let column = random.randint(1, width - 1)
  const steps = Math.floor(1.7 * (height + width))
  for (let step = 0; step < steps; step++) {
    if (random.random() < 0.35) heading = one(headings)
    row = clamp(row + heading[0], height - 1)
    column = clamp(column + heading[1], width - 1)
    for (const [down, right] of one(masks)) cells[(row - 1 + down) * width + column - 1 + right] = Cell.floor
  }
  return cells.map((cell, i) => {
    const [y, x] = [Math.floor(i / width), i % width]
    return y === 0 || y === height - 1 || x === 0 || x === width - 1 ? Cell.wall : cell
  })
}

/** Draws the cell of the player, then the targets, which are marked in `structure`. */
function place(random: NumpyRandom, structure: Uint8Array, boxes: number): number {
  const free = Array.from(structure.keys()).filter((i) => structure[i] === Cell.floor)
  const take = () => free.splice(random.randint(free.length), 1)[0]!
  const player = take()
  for (let i = 0; i < boxes; i++) structure[take()] = Cell.target
  return player
}

interface Start {
  player: number
  /** Cell of the box of each target; targets in row-major order. */
  readonly boxes: readonly number[]
  /** Sum over boxes of the Manhattan distance to the box's target. */
  readonly distance: number
}

/**
 * Depth-first search over the player's moves; a box behind the player is always pulled along. The best state is the first with
 * the highest (changes of the pulled box) × (distance of boxes from their targets).
 */
function playBackwards(structure: Uint8Array, player: number, width: number, depth: number): Start {
  const targets = Array.from(structure.keys()).filter((i) => structure[i] === Cell.target)
  const boxes = [...targets]
  // gym-sokoban distinguishes boxes that were pulled from those that were not, so states include this.
  const pulled = boxes.map(() => 0)
  const owner = new Int16Array(structure.length).fill(-1)
  for (const [box, cell] of boxes.entries()) owner[cell] = box
  const steps = directions.map((direction) => offset(direction, width))
  const manhattan = (a: number, b: number) =>
    Math.abs(Math.floor(a / width) - Math.floor(b / width)) + Math.abs((a % width) - (b % width))
  const distance = () => boxes.reduce((sum, cell, box) => sum + manhattan(cell, targets[box]!), 0)

  const seen = new Set<string>()
  let best: Start = { player, boxes: [...boxes], distance: 0 }
  let bestScore = 0

  const explore = (player: number, swaps: number, lastPulled: number, depth: number): void => {
    if (depth <= 0 || seen.size >= maxStates) return
    const states = boxes.map((cell, box) => 2 * cell + pulled[box]!).sort((a, b) => a - b)
    const key = String.fromCharCode(player, ...states)
    if (seen.has(key)) return
    seen.add(key)

    const uncovered = targets.every((cell) => cell !== player && owner[cell]! < 0)
    const score = uncovered ? swaps * distance() : 0
    if (score > bestScore) {
      bestScore = score
      best = { player, boxes: [...boxes], distance: distance() }
    }

    for (const step of steps) {
      const to = player + step
      if (structure[to] === Cell.wall || owner[to]! >= 0) continue
      const from = player - step
      const box = owner[from]!
      if (box < 0) {
        explore(to, swaps, lastPulled, depth - 1)
        continue
      }
      const before = pulled[box]!
      owner[from] = -1
      owner[player] = box
      boxes[box] = player
      pulled[box] = 1
      explore(to, box === lastPulled ? swaps : swaps + 1, box, depth - 1)
      owner[from] = box
      owner[player] = -1
      boxes[box] = from
      pulled[box] = before
    }
  }
  explore(player, 0, -1, depth - 1)
  return best
}

/** Moves the player up to three cells away, so that the first pushes do not just undo the last pulls. */
function wander(random: PythonRandom, start: Start, structure: Uint8Array, width: number): number {
  const maxSteps = 3
  let { player } = start
  if (random.random() > (start.distance === 1 ? 0.8 : 0.5)) return player
  const visited = new Set([player])
  for (let step = 1; step <= maxSteps; step++) {
    const next = directions
      .map((direction) => player + offset(direction, width))
      .filter((to) => isFree(structure[to]!) && !start.boxes.includes(to) && !visited.has(to))
    if (next.length === 0) break
    player = random.choice(next)
    visited.add(player)
    if (step < maxSteps && random.random() > 0.5) break
  }
  return player
}

function draw(structure: Uint8Array, start: Start): Uint8Array {
  const cells = Uint8Array.from(structure)
  for (const box of start.boxes) cells[box] = cells[box] === Cell.target ? Cell.boxOnTarget : Cell.box
  cells[start.player] = cells[start.player] === Cell.target ? Cell.playerOnTarget : Cell.player
  return cells
}
