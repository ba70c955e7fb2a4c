/**
 * Display names of objects. `Drawer_bar_…` is a drawer, `Sink_bar_…_bar_SinkBasin` a sinkbasin. Of three drawers, the first in the order
 * of ids is "drawer 3", the last "drawer 1". An id without `_bar_` is its own name followed by a space without a number, as in ALFWorld.
 * `_dot_` and the like encode characters that ids cannot contain.
 *
 * @param ids ids of the objects that occur in facts, ascending
 */
export function displayNames(ids: readonly string[]): Map<string, string> {
  const kinds = ids.map((id) => {
    const end = id.indexOf("_bar_")
    return end < 0 ? undefined : plain(id.slice(0, end)) + (id.includes("basin") ? "basin" : "")
  })
  const counts = new Map<string | undefined, number>()
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  const names = new Map<string, string>()
  for (const [i, id] of ids.entries()) {
    const kind = kinds[i]
    const number = counts.get(kind)!
    counts.set(kind, number - 1)
    names.set(id, kind === undefined ? `${plain(id)} ` : `${kind} ${number}`)
  }
  return names
}

function plain(id: string): string {
  return marks.reduce((text, [word, mark]) => text.replaceAll(word, mark), id)
}

const marks = [
  ["_minus_", "-"],
  ["_plus_", "+"],
  ["_dot_", "."],
  ["_comma_", ","],
] as const
