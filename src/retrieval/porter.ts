// M. F. Porter, "An algorithm for suffix stripping", Program 14 (1980), with the author's later changes: abli became
// bli, logi was added, and words of one or two letters are unchanged.

const step2: readonly (readonly [string, string])[] = [
  ["ational", "ate"],
  ["tional", "tion"],
  ["enci", "ence"],
  ["anci", "ance"],
  ["izer", "ize"],
  ["bli", "ble"],
  ["alli", "al"],
  ["entli", "ent"],
  ["eli", "e"],
  ["ousli", "ous"],
  ["ization", "ize"],
  ["ation", "ate"],
  ["ator", "ate"],
  ["alism", "al"],
  ["iveness", "ive"],
  ["fulness", "ful"],
  ["ousness", "ous"],
  ["aliti", "al"],
  ["iviti", "ive"],
  ["biliti", "ble"],
  ["logi", "log"],
]

const step3: readonly (readonly [string, string])[] = [
  ["icate", "ic"],
  ["ative", ""],
  ["alize", "al"],
  ["iciti", "ic"],
  ["ical", "ic"],
  ["ful", ""],
  ["ness", ""],
]

// Longest first if one ends in another.
const step4 = "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize".split(" ")

/** Stem of a lower-case word. Characters other than a, e, i, o, u and y count as consonants. */
export function porterStem(word: string): string {
  if (word.length <= 2) return word
  let stem = word
  if (stem.endsWith("s")) {
    if (stem.endsWith("sses") || stem.endsWith("ies")) stem = stem.slice(0, -2)
    else if (!stem.endsWith("ss")) stem = stem.slice(0, -1)
  }
  stem = withoutPast(stem)
  if (stem.endsWith("y") && hasVowel(stem, stem.length - 1)) stem = `${stem.slice(0, -1)}i`
  stem = replaced(stem, step2)
  stem = replaced(stem, step3)
  stem = withoutEnding(stem)
  if (stem.endsWith("e")) {
    const measured = measure(stem, stem.length - 1)
    if (measured > 1 || (measured === 1 && !endsShort(stem, stem.length - 1))) stem = stem.slice(0, -1)
  }
  return stem.endsWith("ll") && measure(stem, stem.length) > 1 ? stem.slice(0, -1) : stem
}

/** Step 1b: -eed, -ed, -ing. */
function withoutPast(word: string): string {
  if (word.endsWith("eed")) return measure(word, word.length - 3) > 0 ? word.slice(0, -1) : word
  const cut = word.endsWith("ed") ? 2 : word.endsWith("ing") ? 3 : 0
  if (cut === 0 || !hasVowel(word, word.length - cut)) return word
  const stem = word.slice(0, -cut)
  if (/(?:at|bl|iz)$/.test(stem)) return `${stem}e`
  if (endsDouble(stem)) return /[lsz]$/.test(stem) ? stem : stem.slice(0, -1)
  return measure(stem, stem.length) === 1 && endsShort(stem, stem.length) ? `${stem}e` : stem
}

/** Applies the first matching ending of a step, if the part before it has measure 1 or more. */
function replaced(word: string, endings: readonly (readonly [string, string])[]): string {
  const found = endings.find(([ending]) => word.endsWith(ending))
  if (!found || measure(word, word.length - found[0].length) === 0) return word
  return word.slice(0, word.length - found[0].length) + found[1]
}

/** Step 4: removes an ending if the part before it has measure 2 or more. */
function withoutEnding(word: string): string {
  const found = step4.find((ending) => word.endsWith(ending))
  if (!found) return word
  const length = word.length - found.length
  if (found === "ion" && !/[st]/.test(word[length - 1] ?? "")) return word
  return measure(word, length) > 1 ? word.slice(0, length) : word
}

/** Whether a letter is a vowel. A y is a consonant at the start and after a vowel. */
function isVowel(word: string, at: number): boolean {
  const letter = word[at]!
  return "aeiou".includes(letter) || (letter === "y" && at > 0 && !isVowel(word, at - 1))
}

function hasVowel(word: string, length: number): boolean {
  for (let at = 0; at < length; at++) if (isVowel(word, at)) return true
  return false
}

/** m of [C](VC)^m[V]: number of vowel-consonant transitions in the first `length` letters. */
function measure(word: string, length: number): number {
  let count = 0
  let afterVowel = false
  for (let at = 0; at < length; at++) {
    const vowel = isVowel(word, at)
    if (afterVowel && !vowel) count++
    afterVowel = vowel
  }
  return count
}

function endsDouble(word: string): boolean {
  const last = word.length - 1
  return last > 0 && word[last] === word[last - 1] && !isVowel(word, last)
}

/** Whether a word ends with consonant, vowel, consonant other than w, x and y, as in hop(e). */
function endsShort(word: string, length: number): boolean {
  if (length < 3 || isVowel(word, length - 1) || !isVowel(word, length - 2) || isVowel(word, length - 3)) return false
  return !"wxy".includes(word[length - 1]!)
}
