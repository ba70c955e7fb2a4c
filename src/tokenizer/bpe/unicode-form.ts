export type UnicodeForm = "NFC" | "NFD" | "NFKC" | "NFKD"

/** Long runs of combining marks, including the two letters that decompose to one. No language uses so many on a character. */
const longRun = /[\p{M}\uff9e\uff9f]{33,}/gu

/**
 * `text.normalize(form)` in linear time. The JavaScript engine sorts the combining marks of a character in quadratic time, so long runs are
 * sorted first.
 */
export function unicodeForm(text: string, form: UnicodeForm): string {
  const decomposed = form.startsWith("NFK") ? "NFKD" : "NFD"
  return text.replace(longRun, (run) => inOrder(run, decomposed)).normalize(form)
}

/** Decomposes each character and sorts the marks between starters by combining class. The sort is stable. */
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

/** Rank of the combining class of each mark; characters of class 0 are absent. */
function combiningClasses(): ReadonlyMap<string, number> {
  classes ??= readClasses()
  return classes
}

/** Derives combining classes from `normalize`, which swaps two marks if the second has the lower class. */
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

/** Whether a mark has class 0, so that U+0300 and U+0316 are not swapped across it. */
function isStarter(mark: string): boolean {
  const between = `\u0300${mark}\u0316`
  return between.normalize("NFD") === between
}
