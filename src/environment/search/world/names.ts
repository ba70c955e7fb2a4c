import { analyse } from "../../../retrieval/analyse.ts"
import type { Random } from "../../../util/random.ts"
import { type Kind, kindNames, kinds } from "./kinds.ts"

// Parts of invented words of two or three syllables without a meaning.
const onsets = "b br d dr f g gr h k kl l m n p r s st t tr v".split(" ")
const vowels = "a e i o u".split(" ")
const codas = ["", "", "l", "n", "r", "s"]

/**
 * Names of two words for the entities of each kind. They consist of an invented root and a word that shows the kind (`Velan Bay`,
 * `Velan Mills`); people have an invented first name, and a root as family name. So the names of a world have few different words, and
 * every name is unique.
 */
export function makeNames(countOf: (kind: Kind) => number, random: Random): Readonly<Record<Kind, readonly string[]>> {
  const rootCount = Math.max(10, Math.ceil((Math.max(...kindNames.map(countOf)) * 1.5) / 8))
  const invented = inventWords(rootCount + 12, random.derive("words"))
  const [roots, firstNames] = [invented.slice(0, rootCount), invented.slice(rootCount)]
  const namesOf = (kind: Kind) => {
    const endings = kinds[kind].endings
    const pairs =
      kind === "person"
        ? firstNames.flatMap((first) => roots.map((root) => `${first} ${root}`))
        : roots.flatMap((root) => endings.map((ending) => `${root} ${ending}`))
    return random.derive(kind).shuffled(pairs).slice(0, countOf(kind))
  }
  return Object.fromEntries(kindNames.map((kind) => [kind, namesOf(kind)])) as Record<Kind, string[]>
}

/** Capitalized words that are different terms for a search, both from each other and from the words of the passages. */
function inventWords(count: number, random: Random): string[] {
  const taken = new Set(
    Object.values(kinds).flatMap(({ endings, passage, relations }) => [
      ...analyse(`${endings.join(" ")} ${passage}`),
      ...Object.values(relations).flatMap(({ to, question }) =>
        analyse(`${question} ${typeof to === "string" ? to : to.join(" ")}`),
      ),
    ]),
  )
  const pick = (list: readonly string[]) => list[random.below(list.length)]!
  const words: string[] = []
  while (words.length < count) {
    const length = count > 2000 ? 3 : 2
    const syllables = Array.from(
      { length },
      (_, i) => pick(onsets) + pick(vowels) + (i === length - 1 ? pick(codas) : ""),
    )
    const word = syllables.join("")
    const [term] = analyse(word)
    if (term === undefined || taken.has(term)) continue
    taken.add(term)
    words.push(word[0]!.toUpperCase() + word.slice(1))
  }
  return words
}
