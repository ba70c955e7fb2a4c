import { basename, dirname, resolve } from "node:path"
import type { DataContext, Example, TrainingData } from "../../data/data.ts"
import { GrowingRows } from "../../data/growing-rows.ts"
import { checkPath } from "../../options/arguments.ts"
import { runFiles } from "../../runs/files.ts"
import { isSolved } from "../../training/summary.ts"
import { GigpoError } from "../../util/errors.ts"
import { completionText, type RecordedEpisode, type RecordedGroup, type RecordedStep } from "../data/recorded.ts"
import { readEpisodes } from "./read.ts"

/**
 * Recorded episodes of a run as training data for SFT (`sft({ data })`): successful ones, or with `successes: false` all that neither failed
 * nor were excluded. Recordings contain texts, which are tokenized again, so the model needs the tokenizer and chat template of the recorded
 * run. Invalid and truncated completions remain in the context and are not trained on; this is our choice.
 *
 * @param folder - folder of the run, or its `episodes/`
 */
export function recordedEpisodes(folder: string): TrainingData {
  checkPath("The folder of the run", folder)
  const path = resolve(folder)
  const run = basename(path) === runFiles.episodes ? dirname(path) : path
  return {
    name: folder,
    async *examples(context) {
      const { successfulOnly, signal, onWarning } = context
      let [played, other] = [0, 0]
      for await (const group of readEpisodes(run)) {
        for (const episode of group.episodes) {
          signal?.throwIfAborted()
          if (episode.outcome === "failed" || episode.outcome === "excluded") continue
          played++
          if (successfulOnly && !isSolved(episode)) continue
          const { example, tokenizedOtherwise } = exampleOf(group, episode, context)
          if (tokenizedOtherwise) other++
          yield example
        }
      }
      if (played === 0)
        throw new GigpoError(
          "BAD_DATA",
          `${folder} has no recorded episodes. Pass the folder of a run that records them (recording.every).`,
        )
      if (other > 0)
        onWarning(
          `${folder}: the prompts of ${other} episodes have other token counts than when they were recorded. ` +
            "Check that the model has the same tokenizer as the recorded run.",
        )
    },
  }
}

function exampleOf(
  { iteration, group }: RecordedGroup,
  { member, steps }: RecordedEpisode,
  { tokenizer }: DataContext,
) {
  const conversations = new Map<string, GrowingRows>() // by conversation and agent
  const keyOf = ({ conversation, agent }: RecordedStep) => JSON.stringify([conversation, agent])
  const rewardsOf = (key: string) => steps.flatMap((step) => (keyOf(step) === key ? [step.reward] : []))
  const earned = new Map([...new Set(steps.map(keyOf))].map((key) => [key, Float64Array.from(rewardsOf(key))]))
  const seen = new Map<string, number>()
  let tokenizedOtherwise = false
  for (const step of steps) {
    const key = keyOf(step)
    const at = seen.get(key) ?? 0
    seen.set(key, at + 1)
    const rows = conversations.get(key) ?? new GrowingRows((text) => tokenizer.encode(text))
    conversations.set(key, rows)
    const completion = completionText(step)
    const tokens = rows.add({
      prompt: step.prompt,
      completion,
      tokens: tokenizer.encode(completion),
      weight: Number(isWhole(step)),
      course: { rewards: earned.get(key)!, at },
    })
    if (tokens !== undefined && tokens !== step.promptTokens) tokenizedOtherwise = true
  }
  const place = `iteration ${iteration}, task ${group}, episode ${member}`
  const example: Example = { place, sequences: [...conversations.values()].flatMap((rows) => rows.sequences()) }
  return { example, tokenizedOtherwise }
}

function isWhole({ valid, finishReason }: RecordedStep): boolean {
  return valid && finishReason === "stop"
}
