import { GigpoError } from "../../util/errors.ts"

/** Codes of the contents of a cell. */
export const Cell = {
  wall: 0,
  floor: 1,
  target: 2,
  boxOnTarget: 3,
  box: 4,
  player: 5,
  playerOnTarget: 6,
} as const

const symbols = "#_O√XPS"

/** Complete state of the game. */
export interface Room {
  readonly height: number
  readonly width: number
  /** Cell codes, [height × width], row by row. The border is wall. */
  readonly cells: Uint8Array
}

export type Direction = "up" | "down" | "left" | "right"

export const directions: readonly Direction[] = ["up", "down", "left", "right"]

/** Index difference in `Room.cells` of a move in this direction. */
export function offset(direction: Direction, width: number): number {
  return { up: -width, down: width, left: -1, right: 1 }[direction]
}

export function isTarget(cell: number): boolean {
  return cell === Cell.target || cell === Cell.boxOnTarget || cell === Cell.playerOnTarget
}

export function isBox(cell: number): boolean {
  return cell === Cell.box || cell === Cell.boxOnTarget
}

export function isPlayer(cell: number): boolean {
  return cell === Cell.player || cell === Cell.playerOnTarget
}

export function isFree(cell: number): boolean {
  return cell === Cell.floor || cell === Cell.target
}

/** Text of a room as the model sees it: one symbol per cell, cells separated by a space, rows by a line break. */
export function formatRoom(room: Room): string {
  let text = ""
  for (let i = 0; i < room.cells.length; i++) {
    if (i > 0) text += i % room.width === 0 ? "\n" : " "
    text += symbols[room.cells[i]!]
  }
  return text
}

/** Parses the text of a room, the inverse of `formatRoom`. Spaces are optional. Throws `BAD_ARGUMENT` if the room is not playable. */
export function parseRoom(text: string): Room {
  const rows = text
    .trim()
    .split("\n")
    .map((row) => row.replace(/\s/g, ""))
  const [height, width] = [rows.length, rows[0]!.length]
  const cells = Uint8Array.from(rows.join(""), (symbol) => {
    const code = symbols.indexOf(symbol)
    if (code < 0) throw bad(`it contains "${symbol}"; the symbols are ${[...symbols].join(" ")}`)
    return code
  })
  if (rows.some((row) => row.length !== width)) throw bad("its rows differ in length")
  const isBorder = (i: number) => i < width || i >= cells.length - width || i % width === 0 || i % width === width - 1
  if (cells.some((cell, i) => isBorder(i) && cell !== Cell.wall)) throw bad("its border must consist of walls (#)")
  const count = (kind: (cell: number) => boolean) => cells.filter(kind).length
  if (count(isPlayer) !== 1) throw bad("it needs exactly one player (P, or S on a target)")
  if (count(isBox) === 0 || count(isBox) !== count(isTarget))
    throw bad("it needs at least one box, and as many targets as boxes")
  return { height, width, cells }
}

function bad(reason: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `This is not a Sokoban room: ${reason}.`)
}
