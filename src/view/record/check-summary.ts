import { isObject } from "../../options/read.ts"
import { outcomes } from "../../rollout/outcome.ts"
import { type ProblemCount, problemCounts } from "../data/source.ts"
import type { Block, Written } from "./file.ts"
import { below, type Check, checked, isCount, isNumber, isText, listOf, optional } from "./shape.ts"

const isChecksum: Check = (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 32
const isPosition: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0

/** Checks the summary of an iteration and drops unknown members. Throws for invalid summaries. */
export function checkSummary(summary: unknown, iteration: number): Written {
  const { group, tasks } = isObject(summary) ? summary : {}
  const [episodes, labels] = [group, tasks].map((list) => (Array.isArray(list) ? list.length : 0))
  const { blocks, problems, ...columns } = checked<Written>(summary, {
    iteration: (value) => value === iteration,
    group: listOf(isCount),
    member: listOf(isCount, episodes),
    task: listOf(below(labels!), episodes),
    outcome: listOf(below(outcomes.length), episodes),
    success: listOf((value) => value === null || isNumber(value), episodes),
    return: listOf(isNumber, episodes),
    steps: listOf(isCount, episodes),
    tokens: listOf(isCount, episodes),
    tasks: listOf(isText),
    problems: optional(isObject),
    blocks: listOf(isObject),
  })
  return {
    ...columns,
    ...(problems !== undefined && { problems: checkProblems(problems, episodes!) }),
    blocks: blocks.map(checkBlock),
  }
}

function checkProblems(problems: unknown, episodes: number): NonNullable<Written["problems"]> {
  const counts = Object.fromEntries(problemCounts.map((name) => [name, listOf(isCount, episodes)]))
  const { refused, ...named } = problems as Record<string, unknown> // `rejected` in recordings of earlier versions
  const columns = refused === undefined ? named : { rejected: refused, ...named }
  return checked<NonNullable<Written["problems"]>>(columns, counts as Record<ProblemCount, Check>)
}

function checkBlock(block: unknown): Block {
  return checked<Block>(block, {
    offset: isPosition,
    bytes: isPosition,
    checksum: isChecksum,
    length: isCount,
    groups: listOf(isCount),
  })
}
