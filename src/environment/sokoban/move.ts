import { Cell, type Direction, isBox, isFree, isPlayer, isTarget, offset, type Room } from "./room.ts"

/**
 * Room after a move. The player walks to a free cell, or pushes a box if the cell behind the box is free. Any other move returns the
 * same object.
 */
export function move(room: Room, direction: Direction): Room {
  const step = offset(direction, room.width)
  const from = room.cells.findIndex(isPlayer)
  const to = from + step
  const pushes = isBox(room.cells[to]!)
  if (!isFree(room.cells[pushes ? to + step : to]!)) return room

  const cells = Uint8Array.from(room.cells)
  cells[from] = isTarget(cells[from]!) ? Cell.target : Cell.floor
  cells[to] = isTarget(cells[to]!) ? Cell.playerOnTarget : Cell.player
  if (pushes) cells[to + step] = isTarget(cells[to + step]!) ? Cell.boxOnTarget : Cell.box
  return { ...room, cells }
}

export function boxesOnTarget(room: Room): number {
  return room.cells.reduce((sum, cell) => sum + (cell === Cell.boxOnTarget ? 1 : 0), 0)
}

export function isSolved(room: Room): boolean {
  return !room.cells.includes(Cell.box)
}
