import type { Board } from "./board.ts"

export const keysInWords =
  "Left and Right move from value to value, Home and End to the first and last value, Shift with Left and Right moves the visible range; " +
  "+ and - zoom, 0 shows all."

/** Handles a key on a chart. */
export function boardKeys(event: KeyboardEvent, board: Board, along: readonly number[]): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  const act = actions[event.key]
  if (!act) return
  event.preventDefault()
  act(board, along, event.shiftKey)
}

type Act = (board: Board, along: readonly number[], shift: boolean) => void

const actions: Readonly<Record<string, Act>> = {
  ArrowLeft: (board, along, shift) => (shift ? board.pan(-0.25) : step(board, along, -1)),
  ArrowRight: (board, along, shift) => (shift ? board.pan(0.25) : step(board, along, 1)),
  Home: (board, along) => read(board, along.at(0)),
  End: (board, along) => read(board, along.at(-1)),
  "+": (board) => board.scale(0.5),
  "=": (board) => board.scale(0.5),
  "-": (board) => board.scale(2),
  "0": (board) => board.reset(),
  Escape: (board) => board.point(undefined),
}

/** Moves to the next or previous value. */
function step(board: Board, along: readonly number[], by: -1 | 1): void {
  const { at } = board
  if (at === undefined) read(board, along.at(-1))
  else read(board, by > 0 ? along.find((one) => one > at) : along.findLast((one) => one < at))
}

/** Selects a value and scrolls the visible range to it. */
function read(board: Board, at: number | undefined): void {
  if (at === undefined) return
  const [from, to] = board.range
  if (at < from) board.zoom(at, at + to - from)
  if (at > to) board.zoom(at - (to - from), at)
  board.point(at)
}
