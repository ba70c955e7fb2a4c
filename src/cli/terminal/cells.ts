// Width of text in terminal cells: most characters take one, East Asian scripts and pictures two, combining marks none.

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u
const mark = /\p{M}/u

export function cellsOf(text: string): number {
  let cells = 0
  for (const character of text) cells += cellsOfOne(character)
  return cells
}

/** Breaks text into lines of at most `width` cells. */
export function wrapped(text: string, width: number): string[] {
  return text.split("\n").flatMap((line) => {
    const lines: string[] = []
    let [start, at, cells] = [0, 0, 0]
    for (const character of line) {
      const more = cellsOfOne(character)
      if (cells + more > width && at > start) {
        lines.push(line.slice(start, at))
        ;[start, cells] = [at, 0]
      }
      at += character.length
      cells += more
    }
    return [...lines, line.slice(start)]
  })
}

function cellsOfOne(character: string): number {
  if (character < "\u0300") return 1
  return wide.test(character) ? 2 : mark.test(character) ? 0 : 1
}
