import { readFile } from "node:fs/promises"
import { GigpoError } from "../errors.ts"
import { compare, type Difference } from "./compare.ts"
import { criticTopics } from "./critic.ts"
import { estimatorTopics } from "./estimators.ts"
import type { Fixture } from "./fixture.ts"
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
  /** Why a vector could not be compared: its topic is unknown, or what computes it refused. */
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
    const { params = {}, inputs = {}, expected } = given as Partial<Vector> & Pick<Vector, "expected">
    const vector = { params, inputs, expected, fixture }
    const found = await compareVector(key, topic, vector, known)
    reports.set(topic, {
      topic,
      compared: compared + found.compared,
      differ: differ + found.differ,
      first: [...first, ...found.first].slice(0, 3),
      failed: [...failed, ...found.failed],
    })
  }
  return [...reports.values()]
}

async function compareVector(
  key: string,
  topic: string,
  vector: Vector,
  known: Readonly<Record<string, Topic>>,
): Promise<Omit<TopicReport, "topic">> {
  const none = { compared: 0, differ: 0, first: [] }
  if (!Object.hasOwn(known, topic)) return { ...none, failed: [`${key}: there is no topic "${topic}"`] }
  try {
    const { inputs, expected } = vector
    return { ...compare(key, expected, await known[topic]!(vector), inputs.mask), failed: [] }
  } catch (error) {
    return { ...none, failed: [`${key}: ${error instanceof Error ? error.message : error}`] }
  }
}

async function readVectors(path: string): Promise<VectorFile> {
  try {
    return JSON.parse(await readFile(path, "utf8"))
  } catch (cause) {
    throw new GigpoError("BAD_ARGUMENT", `${path} is no file of vectors: ${(cause as Error).message}`, { cause })
  }
}
