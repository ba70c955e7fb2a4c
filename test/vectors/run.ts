import { readFile } from "node:fs/promises"
import { GigpoError } from "../../src/util/errors.ts"
import { compare, type Difference } from "./compare.ts"
import { criticTopics } from "./critic.ts"
import { estimatorTopics } from "./estimators.ts"
import type { Fixture } from "./fixture.ts"
import { vectorsOf } from "./layout.ts"
import { lossTopics } from "./losses.ts"
import { successorTopics } from "./successors.ts"
import { surrogateTopics } from "./surrogate.ts"
import type { Topic, Vector } from "./topic.ts"

interface VectorFile {
  readonly fixture?: Fixture
  readonly [key: string]: unknown
}

/** The topics that can be compared, by name; a file whose topics share a fixture has `successorTopics`. */
export const topics: Readonly<Record<string, Topic>> = {
  ...criticTopics,
  ...estimatorTopics,
  ...lossTopics,
  ...surrogateTopics,
}

export interface TopicReport {
  readonly topic: string
  /** Numbers that were compared, and those of them that differ. */
  readonly compared: number
  readonly differ: number
  /** Where, the first of them. */
  readonly first: readonly Difference[]
  /** Why a vector could not be compared: its topic or its layout is unknown, or what computes it rejected. */
  readonly failed: readonly string[]
}

/**
 * Compares every vector of a file with what this package computes: `{ "topic" or "topic/n": { params, inputs, expected } }`; keys
 * that begin with an underscore are notes. Beside the topics there may be a `fixture`, the steps of those that say that they use it.
 *
 * @throws GigpoError `BAD_ARGUMENT` for a file that cannot be read.
 */
export async function compareFile(path: string): Promise<TopicReport[]> {
  const reports = new Map<string, TopicReport>()
  const { fixture, ...vectors } = await readVectors(path)
  const known = fixture === undefined ? topics : successorTopics
  for (const [key, given] of Object.entries(vectors)) {
    if (key.startsWith("_")) continue
    const topic = key.split("/")[0]!
    const { compared, differ, first, failed } = reports.get(topic) ?? { compared: 0, differ: 0, first: [], failed: [] }
    const found = await compareEntry(key, topic, given, fixture, known)
    const all = (name: "compared" | "differ") => found.reduce((sum, one) => sum + one[name], 0)
    reports.set(topic, {
      topic,
      compared: compared + all("compared"),
      differ: differ + all("differ"),
      first: [...first, ...found.flatMap((one) => one.first)].slice(0, 3),
      failed: [...failed, ...found.flatMap((one) => one.failed)],
    })
  }
  return [...reports.values()]
}

type Found = Omit<TopicReport, "topic">

const failure = (message: string): Found => ({ compared: 0, differ: 0, first: [], failed: [message] })

async function compareEntry(
  key: string,
  topic: string,
  given: unknown,
  fixture: Fixture | undefined,
  known: Readonly<Record<string, Topic>>,
): Promise<Found[]> {
  if (!Object.hasOwn(known, topic)) return [failure(`${key}: there is no topic "${topic}"`)]
  try {
    const found = vectorsOf(key, given, fixture).map(([where, vector]) => compareVector(where, vector, known[topic]!))
    return found.length > 0 ? await Promise.all(found) : [failure(`${key}: it holds no vector`)]
  } catch (error) {
    return [failure(`${key}: ${messageOf(error)}`)]
  }
}

async function compareVector(where: string, vector: Vector, compute: Topic): Promise<Found> {
  try {
    const { inputs, expected } = vector
    const found = compare(where, expected, await compute(vector), inputs.mask)
    return found.compared > 0 ? { ...found, failed: [] } : failure(`${where}: nothing is expected of it`)
  } catch (error) {
    return failure(`${where}: ${messageOf(error)}`)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

async function readVectors(path: string): Promise<VectorFile> {
  try {
    const read: unknown = JSON.parse(await readFile(path, "utf8"))
    if (typeof read === "object" && read !== null && !Array.isArray(read)) return read as VectorFile
    throw new Error("it is no object of topics")
  } catch (cause) {
    throw new GigpoError("BAD_ARGUMENT", `${path} is no file of vectors: ${(cause as Error).message}`, { cause })
  }
}
