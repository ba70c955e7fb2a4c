import { Cell, type Direction, directions, isBox, isPlayer, isTarget, offset, type Room } from "./room.ts"

export interface SolveOptions {
  /** Maximum number of states of the search. Default 1,000,000, which takes one or two seconds. */
  readonly maxPositions?: number
}

/**
 * Solution with the fewest moves. Empty for a solved room; `undefined` if there is none or `maxPositions` is reached. Breadth-first search
 * over (player, set of boxes); states with a box on a cell from which no target can be reached are skipped.
 */
export function solve(room: Room, options: SolveOptions = {}): Direction[] | undefined {
  const { maxPositions = 1_000_000 } = options
  const steps = directions.map((direction) => offset(direction, room.width))
  const cellsWhere = (kind: (cell: number) => boolean) =>
    Array.from(room.cells.keys()).filter((i) => kind(room.cells[i]!))
  const targets = cellsWhere(isTarget)
  const alive = aliveCells(room, targets, steps)

  // Position n: player at queue[n * stride], then its boxes in ascending order.
  const start = [...cellsWhere(isPlayer), ...cellsWhere(isBox)]
  const stride = start.length
  const queue = [...start]
  const parents = [-1]
  const moves = [-1]
  const seen = new Set([String.fromCharCode(...start)])
  const next = [...start]

  for (let n = 0; n < parents.length && n < maxPositions; n++) {
    const base = n * stride
    if (targets.every((cell, i) => queue[base + 1 + i] === cell)) return trace(n, parents, moves)
    for (const [index, step] of steps.entries()) {
      for (let i = 0; i < stride; i++) next[i] = queue[base + i]!
      const to = next[0]! + step
      if (room.cells[to] === Cell.wall) continue
      const box = next.indexOf(to, 1)
      if (box > 0) {
        if (alive[to + step] === 0 || next.includes(to + step, 1)) continue
        next[box] = to + step
        sortBox(next, box)
      }
      next[0] = to
      const key = String.fromCharCode(...next)
      if (seen.has(key)) continue
      seen.add(key)
      for (const cell of next) queue.push(cell)
      parents.push(n)
      moves.push(index)
    }
  }
  return undefined
}

/** Cells from which a single box could be pushed onto a target, found by pulling boxes off targets. */
function aliveCells(room: Room, targets: readonly number[], steps: readonly number[]): Uint8Array {
  const alive = new Uint8Array(room.cells.length)
  const queue = [...targets]
  for (const cell of targets) alive[cell] = 1
  for (const cell of queue) {
    for (const step of steps) {
      const from = cell - step
      if (alive[from] === 1 || room.cells[from] === Cell.wall || room.cells[from - step] === Cell.wall) continue
      alive[from] = 1
      queue.push(from)
    }
  }
  return alive
}

/** Restores the ascending order of the boxes (from index 1) after one of them moved. */
function sortBox(position: number[], box: number): void {
  const cell = position[box]!
  let i = box
  for (; i > 1 && position[i - 1]! > cell; i--) position[i] = position[i - 1]!
  for (; i < position.length - 1 && position[i + 1]! < cell; i++) position[i] = position[i + 1]!
  position[i] = cell
}

function trace(end: number, parents: readonly number[], moves: readonly number[]): Direction[] {
  const path: Direction[] = []
  for (let n = end; parents[n]! >= 0; n = parents[n]!) path.push(directions[moves[n]!]!)
  return path.reverse()
}
