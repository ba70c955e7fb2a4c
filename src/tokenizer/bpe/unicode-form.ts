export type UnicodeForm = "NFC" | "NFD" | "NFKC" | "NFKD"

/** Combining marks, and the two letters that decompose to one. No language writes so many of them on one character. */
const longRun = /[\p{M}\uff9e\uff9f]{33,}/gu

/**
 * `text.normalize(form)` in linear time. The engine orders the combining marks of one character by insertion, whose time is the square
 * of their number: long runs of them are ordered before.
 */
export function unicodeForm(text: string, form: UnicodeForm): string {
  const decomposed = form.startsWith("NFK") ? "NFKD" : "NFD"
  return text.replace(longRun, (run) => inOrder(run, decomposed)).normalize(form)
}

/** Decomposes each character and sorts marks between starters by their combining class. Equal classes keep their order. */
function inOrder(run: string, form: UnicodeForm): string {
  const decompositions = new Map<string, string>()
  let ordered = ""
  let byClass: string[] = []
  for (const character of run) {
    const decomposition = decompositions.get(character) ?? character.normalize(form)
    decompositions.set(character, decomposition)
    for (const mark of decomposition) {
      const combining = combiningClasses().get(mark)
      if (combining === undefined) {
        ordered += byClass.join("") + mark
        byClass = []
      } else byClass[combining] = (byClass[combining] ?? "") + mark
    }
  }
  return ordered + byClass.join("")
}

let classes: ReadonlyMap<string, number> | undefined

/** Marks by number of their combining class, in the order of the classes; characters of class 0 are absent. */
function combiningClasses(): ReadonlyMap<string, number> {
  classes ??= readClasses()
  return classes
}

/** JavaScript does not tell combining classes, but `normalize` shows them: it swaps two marks where the second has the lower class. */
function readClasses(): Map<string, number> {
  const marks: string[] = []
  for (let codePoint = 0x300; codePoint < 0x20000; codePoint++) {
    const mark = String.fromCodePoint(codePoint)
    if (/\p{M}/u.test(mark) && mark.normalize("NFD") === mark && !isStarter(mark)) marks.push(mark)
  }
  const swaps = (a: string, b: string) => (a + b).normalize("NFD") !== a + b
  const compare = (a: string, b: string) => (swaps(a, b) ? 1 : swaps(b, a) ? -1 : 0)
  marks.sort(compare)
  const found = new Map<string, number>()
  let combining = 0
  for (const [index, mark] of marks.entries()) {
    if (index > 0 && compare(marks[index - 1]!, mark) !== 0) combining++
    found.set(mark, combining)
  }
  return found
}

/** Whether a mark has class 0: no mark moves across it. U+0300 and U+0316 swap where nothing is between them. */
function isStarter(mark: string): boolean {
  const between = `\u0300${mark}\u0316`
  return between.normalize("NFD") === between
}
