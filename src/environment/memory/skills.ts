import { integer } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { forEachWord } from "../../retrieval/words.ts"
import type { PromptMemory, RememberedEpisode } from "./memory.ts"
import { formatTurns, historyField, recentTurns } from "./recent.ts"
import { lastNote, longestNote, titled } from "./tagged.ts"

export const skillFields = {
  topk: integer(2, "Number of skills that a prompt shows.", { min: 1 }),
  size: integer(64, "Maximum number of skills in the bank; those with the lowest success rate are removed.", {
    min: 1,
  }),
  maxCharacters: longestNote,
  history: historyField(2),
}

/** Options of `skillMemory`. */
export type SkillOptions = OptionsOf<typeof skillFields>

interface Skill {
  /** First observation of the episode that the skill was taken from. */
  readonly about: string
  readonly text: string
  /** Number of episodes in which the skill was shown. */
  readonly shown: number
  /** Number of successful episodes among those in which the skill was shown. */
  readonly won: number
}

/**
 * Prompt memory with a bank of skills that is kept over the run, after COSPLAY and SEARL, whose banks are not published. Our interpretation:
 * a successful episode adds a skill: the text that the policy wrote between `<skill>` and `</skill>`, or else its actions. A prompt shows
 * the skills with the highest product of two factors: the cosine similarity of the words of the first observations, and the smoothed
 * success rate (won + 1) / (shown + 2) of the episodes that were shown the skill. Success is the metric `success`, or a return above 0 if
 * there is no such metric. The bank changes only between iterations.
 */
export function skillMemory(given: SkillOptions = {}): PromptMemory {
  const { topk, size, maxCharacters, history: length } = readOptions("skillMemory", given, skillFields)
  let bank: readonly Skill[] = []
  const found = (about: string) => best(bank, (skill) => likeness(skill.about, about) * worth(skill), topk)
  return {
    name: "skills",
    notes: true,
    start: () => ({
      render(history, now) {
        const shown = found((history[0]?.observation ?? now).text).map(({ text }, index) => `${index + 1}. ${text}`)
        return [
          ...titled("What helped in tasks like this one:", shown.join("\n")),
          ...titled("Your last steps:", formatTurns(recentTurns(history, length))),
          "Where what you do may help in other tasks, say how inside <skill> </skill>, beside your action.",
        ].join("\n\n")
      },
    }),
    update(episodes) {
      const seen = new Map(bank.map((skill) => [skill, { ...skill }]))
      const fresh = new Map<string, Skill>()
      for (const episode of episodes) {
        const about = episode.turns[0]?.observation.text
        if (about === undefined) continue
        const won = isWon(episode)
        for (const skill of found(about)) {
          const { shown, won: before } = seen.get(skill)!
          seen.set(skill, { ...skill, shown: shown + 1, won: before + Number(won) })
        }
        const text = lastNote(episode.turns, "skill", maxCharacters) || actionsOf(episode, maxCharacters)
        if (won && !fresh.has(text)) fresh.set(text, { about, text, shown: 0, won: 0 })
      }
      for (const { text } of bank) fresh.delete(text)
      bank = best([...seen.values(), ...fresh.values()], worth, size)
    },
    state: () => ({ json: bank.map((skill) => ({ ...skill })) }),
    restore({ json }) {
      bank = json as unknown as readonly Skill[]
    },
  }
}

const worth = ({ shown, won }: Skill) => (won + 1) / (shown + 2)

const isWon = ({ metrics: { success }, return: sum }: RememberedEpisode) => (success ?? sum) > 0

const actionsOf = ({ turns }: RememberedEpisode, longest: number) =>
  turns
    .map(({ action }) => action)
    .join("; ")
    .slice(0, longest)

/** The `count` skills of highest positive value, in their original order. Of equal values the first are taken. */
function best(skills: readonly Skill[], value: (skill: Skill) => number, count: number): Skill[] {
  const ranked = skills.map((skill, place) => ({ skill, place, value: value(skill) })).filter(({ value }) => value > 0)
  const kept = ranked.sort((a, b) => b.value - a.value || a.place - b.place).slice(0, count)
  return kept.sort((a, b) => a.place - b.place).map(({ skill }) => skill)
}

/** Cosine similarity of the word sets of two texts. */
function likeness(a: string, b: string): number {
  const [first, second] = [wordsOf(a), wordsOf(b)]
  const shared = [...first].filter((word) => second.has(word)).length
  return shared === 0 ? 0 : shared / Math.sqrt(first.size * second.size)
}

function wordsOf(text: string): Set<string> {
  const words = new Set<string>()
  forEachWord(text, (word) => words.add(word.toLowerCase()))
  return words
}
