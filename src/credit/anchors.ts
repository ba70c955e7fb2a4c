import { groupAnchors } from "../kernels/group-anchors.ts"
import { checkArguments, checkList } from "../options/arguments.ts"
import { keysOf } from "../options/unknown-key.ts"
import { denseIds } from "../util/dense-ids.ts"
import { GigpoError } from "../util/errors.ts"
import { similarityFields } from "./options.ts"
import { type IndexedText, indexText, readText, resembles } from "./similarity.ts"
import type { SimilarityOptions } from "./types.ts"

type Key = string | number

/**
 * Step groups (Eq. 4, 6): steps of one task with equal anchors, or with equal keys of any other kind. Exact: texts are compared,
 * not only their hashes, natively where all keys are texts.
 *
 * @param tasks the task of each step, [steps]
 * @param anchors the anchor of each step, [steps]
 * @returns the group of each step, [steps]: dense ids in order of first occurrence
 * @throws BAD_ARGUMENT when the lengths differ
 */
export function groupByAnchor(tasks: ArrayLike<Key>, anchors: ArrayLike<Key>): Int32Array {
  if (tasks.length !== anchors.length)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `There are ${tasks.length} tasks but ${anchors.length} anchors; give one each.`,
    )
  if (areTexts(anchors)) return groupAnchors(tasks, anchors).groups
  const task = denseIds(tasks)
  const anchor = denseIds(anchors)
  // One number a pair. Both ids are below the number of steps, so the product is exact.
  return denseIds(Float64Array.from(task, (id, row) => id * task.length + anchor[row]!))
}

function areTexts(keys: ArrayLike<Key>): keys is readonly string[] {
  return Array.isArray(keys) && keys.every((key) => typeof key === "string")
}

/**
 * Step groups of steps of one task with similar anchors, as the reference code forms them: in row order, each step joins
 * the first group of its task whose FIRST member it resembles, `similarityRatio(anchor, first) >= threshold`, or founds a
 * group. So the result depends on the order of the steps. Costs one comparison for each pair of a new anchor and a group
 * of its task, most of them settled by the cheap bounds.
 *
 * @param tasks the task of each step, [steps]
 * @param anchors the anchor of each step, [steps]
 * @returns the group of each step, [steps]: dense ids in order of first occurrence
 * @throws BAD_ARGUMENT when the lengths differ, or the threshold is not in (0, 1]
 */
export function groupBySimilarity(
  tasks: ArrayLike<Key>,
  anchors: ArrayLike<string>,
  options: SimilarityOptions,
): Int32Array {
  checkArguments("similarity", options, keysOf(similarityFields))
  checkList("groupBySimilarity: tasks", tasks)
  checkList("groupBySimilarity: anchors", anchors)
  const { threshold, autojunk = true } = options
  if (typeof threshold !== "number" || !(threshold > 0 && threshold <= 1))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The similarity threshold is ${threshold}; give a number above 0 and at most 1.`,
    )
  if (typeof autojunk !== "boolean")
    throw new GigpoError("BAD_ARGUMENT", `The option autojunk of similarity is ${autojunk}; give true or false.`)
  const founders = new Map<Key, { readonly group: number; readonly text: IndexedText }[]>()
  let groups = 0

  const findGroup = (task: Key, anchor: string): number => {
    const text = readText(anchor)
    const ofTask = founders.get(task) ?? []
    const founder = ofTask.find((candidate) => resembles(text, candidate.text, threshold))
    if (founder) return founder.group
    founders.set(task, ofTask)
    ofTask.push({ group: groups, text: indexText(text, autojunk) })
    return groups++
  }

  // An anchor that its task has seen before goes where it went before, so each is placed once.
  const placed: number[] = []
  return groupByAnchor(tasks, anchors).map((exact, row) => {
    placed[exact] ??= findGroup(tasks[row]!, anchors[row]!)
    return placed[exact]
  })
}
