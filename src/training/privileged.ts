import type { Teacher, Trainable } from "../engine/engine.ts"
import type { Sequence } from "../engine/sequence.ts"
import { readTagged } from "../environment/tags.ts"
import { field, oneOf } from "../options/field.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import type { Group } from "../rollout/hooks.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { GigpoError } from "../util/errors.ts"
import { joined } from "../util/joined.ts"
import type { CurriculumSetup } from "./curriculum/curriculum.ts"
import { expertActions } from "./curriculum/expert-actions.ts"
import { gather } from "./rows.ts"
import type { CollectedStep } from "./steps.ts"

/** Texts in front of the input of a privileged teacher, by name. */
const views = ["best-episode", "skill", "expert", "feedback"] as const

/** Function that returns the text for one episode, given its steps and all steps of its group; undefined for no text. */
export type PrivilegedView = (
  episode: readonly CollectedStep[],
  group: readonly CollectedStep[],
) => string | undefined | Promise<string | undefined>

export const privilegedFields = {
  model: oneOf(
    "policy",
    ["policy", "reference", "teacher"],
    "Model that scores the completions: the policy before the updates of the iteration, the frozen reference policy, or the model of the key " +
      "`teacher`.",
  ),
  context: field<(typeof views)[number] | PrivilegedView, string>(
    "best-episode",
    "Text in front of its input: the actions of the best other episode of the group (best-episode; nothing where no other is at least as good, or all are " +
      "equal), the last text between <skill> tags of that episode, for which the memory `skills` asks (skill), the actions of the environment's " +
      "expert (expert), or what followed each action of the episode itself, with its return (feedback). In " +
      "programs also a function (episode, group) => text.",
    (value) =>
      typeof value === "function" || views.includes(value as never)
        ? undefined
        : `must be one of ${views.map((view) => `"${view}"`).join(", ")}, or a function (episode, group) => text`,
    { schema: { type: "string", enum: views } },
  ),
}

/** Options of a privileged teacher. */
export type PrivilegedOptions = OptionsOf<typeof privilegedFields>

/** Returns the text for each episode of a group, by its number; no entry for an episode without a text. */
export type Sight<Task = unknown> = (
  group: Group<Task>,
  steps: readonly CollectedStep[],
) => Promise<ReadonlyMap<number, string>>

/**
 * Makes the function that returns the additional text of a privileged teacher.
 *
 * @throws GigpoError `BAD_ARGUMENT` for the view "expert" where there is no expert
 */
export function makeSight<Task>(
  { context }: ResolvedOf<typeof privilegedFields>,
  setup: Pick<CurriculumSetup<Task>, "environment" | "rollout">,
): Sight<Task> {
  const solve = context === "expert" ? expertActions("The privileged teacher", setup) : undefined
  return async ({ task }, steps) => {
    const episodes = new Map(gather(steps, ({ episode }) => episode).map((own) => [own[0]!.episode, own]))
    const returns = new Map(
      [...episodes].map(([id, own]) => [id, own.reduce((sum, { record }) => sum + record.reward, 0)]),
    )
    const plan = solve && (await solve(task))
    const texts = new Map<number, string>()
    for (const [id, own] of episodes) {
      let text: string | undefined
      if (typeof context === "function") text = await context(own, steps)
      else if (context === "feedback") text = feedbackOf(own, returns.get(id)!)
      else if (context === "expert") text = plan && listed("A solution of the task that follows:", plan)
      else text = (context === "skill" ? skillOf : actionsOf)(bestOf(id, returns), episodes)
      if (text !== undefined && typeof text !== "string")
        throw new GigpoError(
          "BAD_ARGUMENT",
          `privileged.context returned a value of type ${typeof text}; return a text, or undefined.`,
        )
      if (text) texts.set(id, text)
    }
    return texts
  }
}

/** Best other episode of a group, with its return; undefined if all are equal, or the others are worse. */
function bestOf(id: number, returns: ReadonlyMap<number, number>): readonly [number, number] | undefined {
  if (Math.max(...returns.values()) === Math.min(...returns.values())) return undefined
  const others = [...returns].filter(([other]) => other !== id)
  const best = others.reduce((first, other) => (other[1] > first[1] ? other : first))
  // The best episode of its group learns nothing from one that is worse.
  return best[1] < returns.get(id)! ? undefined : best
}

type Episodes = ReadonlyMap<number, readonly CollectedStep[]>

function actionsOf(best: ReturnType<typeof bestOf>, episodes: Episodes): string | undefined {
  if (!best) return undefined
  const [id, earned] = best
  return listed(
    `Actions of an attempt at the task that follows, which earned ${earned}:`,
    episodes.get(id)!.map(({ record }) => record.action),
  )
}

function skillOf(best: ReturnType<typeof bestOf>, episodes: Episodes): string | undefined {
  const written = best && episodes.get(best[0])!.flatMap(({ record }) => readTagged(record.text, "skill").answer || [])
  const last = written?.at(-1)
  return last === undefined ? undefined : `What helps in the task that follows:\n${last}`
}

function feedbackOf(own: readonly CollectedStep[], earned: number): string {
  const followed = own.map(({ record }, index) => {
    const next = own[index + 1]?.record.observation.text
    return `${record.action} (reward ${record.reward})${next === undefined ? "" : `\n${next}`}`
  })
  return listed(`What follows the actions of this attempt, which earns ${earned}:`, followed)
}

function listed(title: string, lines: readonly string[]): string {
  return [title, ...lines.map((line, index) => `${index + 1}. ${line}`)].join("\n")
}

/** Scorer of a training run with a privileged teacher: a model, and which of its weights. */
export function privilegedScorer(
  { model }: ResolvedOf<typeof privilegedFields>,
  policy: Trainable,
  teacher: Teacher | undefined,
): { readonly scorer: Teacher; readonly of: "current" | "reference" } {
  if (model === "teacher") return { scorer: teacher!, of: "current" }
  return { scorer: policy, of: model === "policy" ? "current" : "reference" }
}

/** Returns the text for each step of an iteration, [steps]; undefined for none. */
export async function seenTexts<Task>(
  sight: Sight<Task>,
  groups: readonly Group<Task>[],
  steps: readonly CollectedStep[],
): Promise<(string | undefined)[]> {
  const texts = new Map<number, ReadonlyMap<number, string>>()
  for (const own of gather(steps, ({ task }) => task)) {
    const { task } = own[0]!
    texts.set(task, await sight(groups[task]!, own))
  }
  return steps.map(({ task, episode }) => texts.get(task)!.get(episode))
}

/**
 * Puts texts in front of sequences, each as a message of the system. A text that does not fit is shortened in its middle. Texts that begin
 * with tokens that begin every text (`textPrefix`) keep them, and the sequences lose them.
 *
 * @param texts text of each sequence, [sequences]; undefined for none
 * @param longest maximum length of a sequence in tokens
 */
export async function withTextsInFront(
  rows: readonly Sequence[],
  texts: readonly (string | undefined)[],
  tokenizer: ChatCodec,
  longest: number,
): Promise<Sequence[]> {
  const encoded = new Map<string, Int32Array>()
  for (const text of texts)
    if (text !== undefined && !encoded.has(text)) encoded.set(text, await encodeNote(text, tokenizer))
  const prefix = tokenizer.textPrefix ?? new Int32Array(0)
  return rows.map((row, at) => {
    const text = texts[at]
    const note = text === undefined ? undefined : shortened(encoded.get(text)!, longest - row.tokens.length)
    if (!note?.length) return row
    const repeated = begins(note, prefix) && begins(row.tokens, prefix) ? prefix.length : 0
    return {
      ...row,
      tokens: joined(Int32Array, [note, row.tokens.subarray(repeated)]),
      segments: row.segments.map((segment) => ({ ...segment, start: segment.start + note.length - repeated })),
    }
  })
}

/** Tokens of a message of the system, or of the user where the template knows no other. */
async function encodeNote(content: string, tokenizer: ChatCodec): Promise<Int32Array> {
  const alone = { addGenerationPrompt: false }
  const encode = async (role: "system" | "user") => (await tokenizer.encodeChat([{ role, content }], alone)).tokens
  try {
    return await encode("system")
  } catch (error) {
    if (error instanceof GigpoError && error.code === "BAD_TOKENIZER") return await encode("user")
    throw error
  }
}

/** Most tokens of the end of a text that is shortened. */
const longestEnd = 16

function shortened(note: Int32Array, room: number): Int32Array {
  if (note.length <= room) return note
  if (room <= 0) return new Int32Array(0)
  const end = Math.min(longestEnd, room >> 1)
  return joined(Int32Array, [note.subarray(0, room - end), note.subarray(note.length - end)])
}

function begins(tokens: Int32Array, prefix: Int32Array): boolean {
  return prefix.every((token, index) => tokens[index] === token)
}
