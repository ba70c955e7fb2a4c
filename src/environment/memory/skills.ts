import { integer } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { forEachWord } from "../../retrieval/words.ts"
import type { Memory, RememberedEpisode } from "./memory.ts"
import { formatTurns, historyField, recentTurns } from "./recent.ts"
import { lastNote, longestNote, titled } from "./tagged.ts"

export const skillFields = {
  show: integer(2, "Skills that a prompt shows.", { min: 1 }),
  size: integer(64, "Skills that are kept; those that helped least leave.", { min: 1 }),
  longest: longestNote,
  length: historyField(2),
}

/** Options of `skills`. */
export type SkillOptions = OptionsOf<typeof skillFields>

interface Skill {
  /** The first observation of the episode that it came of. */
  readonly about: string
  readonly text: string
  /** Episodes that saw it, and those of them that were won. */
  readonly shown: number
  readonly won: number
}

/**
 * A bank of skills, kept over the run, after COSPLAY and SEARL, whose banks are not defined in public. Our reading: an episode that is
 * won leaves a skill, which is what the policy says of it between `<skill>` and `</skill>`, or else its actions; a prompt shows those
 * whose first observations share most words with the episode's own, each weighed by how often who saw it won, (won + 1) / (shown + 2).
 * Success is the metric `success`, or a return above 0 where there is none. The bank changes between iterations alone.
 */
export function skills(given: SkillOptions = {}): Memory {
  const { show, size, longest, length } = readOptions("skills", given, skillFields)
  let bank: readonly Skill[] = []
  const found = (about: string) => best(bank, (skill) => likeness(skill.about, about) * worth(skill), show)
  return {
    name: "skills",
    begin: () => ({
      tell(history, now) {
        const shown = found((history[0]?.observation ?? now).text).map(({ text }, index) => `${index + 1}. ${text}`)
        return [
          ...titled("What helped in tasks like this one:", shown.join("\n")),
          ...titled("Your last steps:", formatTurns(recentTurns(history, length))),
          "Where what you do may help in other tasks, say how inside <skill> </skill>, beside your action.",
        ].join("\n\n")
      },
    }),
    learn(episodes) {
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
        const text = lastNote(episode.turns, "skill", longest) || actionsOf(episode, longest)
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

/** The highest, in the order in which they stand; of equal ones the first. Those of 0 are none. */
function best(skills: readonly Skill[], value: (skill: Skill) => number, count: number): Skill[] {
  const ranked = skills.map((skill, place) => ({ skill, place, value: value(skill) })).filter(({ value }) => value > 0)
  const kept = ranked.sort((a, b) => b.value - a.value || a.place - b.place).slice(0, count)
  return kept.sort((a, b) => a.place - b.place).map(({ skill }) => skill)
}

/** The cosine of the sets of words of two texts. */
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
