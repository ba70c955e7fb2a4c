import { denseIds } from "../dense-ids.ts"
import { GigpoError } from "../errors.ts"
import { native } from "../native.ts"
import { checkArguments, checkList, type KeysOf } from "../options/arguments.ts"
import { type AnchorBytes, toBytes } from "./anchor-bytes.ts"

export type { AnchorBytes } from "./anchor-bytes.ts"

const optionKeys: KeysOf<GroupAnchorsOptions> = { device: true }

export interface GroupAnchorsOptions {
  /**
   * Default "auto": the first CUDA device for 65,536 states or more, where there is one, since the states have to travel there;
   * the CPU otherwise. The groups are the same.
   */
  readonly device?: "auto" | "cpu" | "cuda"
}

const worthTravelling = 65_536

/** UTF-16 units of texts that are made into bytes at a time: few enough to be grouped while a cache still holds them. */
const pieceUnits = 1 << 22

/**
 * Steps of one task that stood in the same state get the same group: dense ids in order of first occurrence. States are hashed
 * natively, and compared: a collision never merges two. Strings are made into bytes first, which all in all is faster than a
 * JavaScript `Map` of strings that were not keys before, as an environment's texts are (see the benchmark `anchors`).
 *
 * @param tasks - [states], any keys.
 * @throws GigpoError `DEVICE_UNAVAILABLE` where "cuda" is asked for and there is none.
 */
export function groupAnchors(
  tasks: ArrayLike<number | string>,
  anchors: readonly string[] | AnchorBytes,
  options: GroupAnchorsOptions = {},
): { groups: Int32Array; count: number } {
  checkArguments("groupAnchors", options, optionKeys)
  checkList("groupAnchors: tasks", tasks)
  if (typeof anchors !== "object" || anchors === null || !("bytes" in anchors))
    checkList("groupAnchors: anchors", anchors)
  const { device = "auto" } = options
  if ("bytes" in anchors) checkBytes(tasks.length, anchors)
  else if (tasks.length !== anchors.length)
    throw bad(`${anchors.length} anchors need as many tasks, not ${tasks.length}`)
  if (!["auto", "cpu", "cuda"].includes(device)) throw bad(`device is "${device}"; it must be "auto", "cpu" or "cuda"`)
  const ids = tasks instanceof Int32Array ? tasks : denseIds(tasks)
  const travels = device === "auto" && ids.length >= worthTravelling && native().deviceReport().devices.length > 0
  const cuda = device === "cuda" || travels
  return "bytes" in anchors
    ? native().groupAnchors(ids, anchors.bytes, anchors.offsets, cuda)
    : groupTexts(ids, anchors, cuda)
}

function groupTexts(tasks: Int32Array, texts: readonly string[], cuda: boolean): { groups: Int32Array; count: number } {
  let units = 0
  for (let i = 0; i < texts.length; i++) units += texts[i]!.length
  if (units > pieceUnits && !cuda && isSorted(tasks)) return groupByPieces(tasks, texts)
  const { bytes, offsets } = toBytes(texts, units)
  return native().groupAnchors(tasks, bytes, offsets, cuda)
}

/** Whole tasks at a time, which stand one after the other, so that the bytes of all texts never exist at once. */
function groupByPieces(tasks: Int32Array, texts: readonly string[]): { groups: Int32Array; count: number } {
  const groups = new Int32Array(tasks.length)
  let count = 0
  for (let start = 0, end = 0; start < tasks.length; start = end) {
    let units = 0
    while (end < tasks.length && (units < pieceUnits || tasks[end] === tasks[end - 1])) units += texts[end++]!.length
    const { bytes, offsets } = toBytes(texts.slice(start, end), units)
    const found = native().groupAnchors(tasks.subarray(start, end), bytes, offsets, false)
    for (let i = start; i < end; i++) groups[i] = count + found.groups[i - start]!
    count += found.count
  }
  return { groups, count }
}

function isSorted(ids: Int32Array): boolean {
  for (let i = 1; i < ids.length; i++) if (ids[i]! < ids[i - 1]!) return false
  return true
}

function checkBytes(states: number, { bytes, offsets }: AnchorBytes): void {
  if (offsets.length !== states + 1) throw bad(`${states} states need ${states + 1} offsets, not ${offsets.length}`)
  for (let i = 0; i < offsets.length; i++) {
    const [at, before] = [offsets[i]!, i === 0 ? 0 : offsets[i - 1]!]
    if (!Number.isSafeInteger(at) || at < before || at > bytes.length)
      throw bad(`offsets[${i}] is ${at}: offsets are whole numbers that never decrease, up to ${bytes.length}`)
  }
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
