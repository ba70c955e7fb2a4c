import type { Environment, Observation, Turn } from "../environment.ts"
import type { Resolved } from "../options.ts"
import { type Corpus, memoryCorpus, openCorpus } from "./corpus.ts"
import { startEpisode } from "./episode.ts"
import { httpRetriever } from "./http-retriever.ts"
import { addressesOf, resolveOptions, type SearchOptions } from "./options.ts"
import { readSearchReply } from "./projection.ts"
import { promptText } from "./prompt.ts"
import { holdOut, readQuestions, type SearchTask, shuffledForever } from "./questions.ts"
import type { Retriever } from "./retriever.ts"
import { worldExpert } from "./world/expert.ts"
import { worldQuestions } from "./world/questions.ts"
import { makeWorld, passageOf, type World } from "./world/world.ts"

export type { SearchOptions } from "./options.ts"
export type { SearchTask } from "./questions.ts"

/**
 * Questions to be answered with a search engine, as Search-R1 poses and verl-agent plays them: a reply searches
 * (`<search>query</search>`) or answers (`<answer>…</answer>`), which ends the episode; 1 for a right answer, else 0. A reply that does
 * neither shows nothing and takes a step all the same.
 *
 * Without options it asks about an embedded, invented world. Metrics: `success`, `searches`, `retrieverFailures`. Rejects with
 * `BAD_CONFIG` where options are wrong, `IO` and `BAD_DATA` where files are.
 */
export async function search(options: SearchOptions = {}): Promise<Environment<SearchTask>> {
  const resolved = resolveOptions(options)
  const world = resolved.questions === undefined ? await makeWorld(resolved.entities, resolved.worldSeed) : undefined
  const tasks = world ? worldTasks(world, resolved) : await fileTasks(resolved.questions!, resolved.testQuestions)
  const retrievers = await openRetrievers(resolved, world)
  const thought = resolved.thinking === "required" ? "<think>I look it up.</think>" : ""
  let turn = 0
  return {
    name: "search",
    tasks,
    async start(task, context) {
      return startEpisode(task, retrievers[turn++ % retrievers.length]!, resolved, context)
    },
    prompt:
      resolved.prompt ??
      ((task, history, now) => [{ role: "user", content: promptText(task, history, now, resolved) }]),
    parse: resolved.parse ?? ((reply) => readSearchReply(reply, resolved.thinking)),
    expert: (task) => ({
      reply(now, history) {
        const reply = task.path ? worldExpert(task, history, now) : plainExpert(task, history, now)
        return reply && thought + reply
      },
    }),
  }
}

type Tasks = Environment<SearchTask>["tasks"]

function worldTasks(world: World, { hops }: Resolved<SearchOptions>): Tasks {
  return (split, random) => worldQuestions(world, split, hops, random)
}

async function fileTasks(questions: string, testQuestions: string | undefined): Promise<Tasks> {
  const all = await readQuestions(questions)
  const { train, test } = testQuestions ? { train: all, test: await readQuestions(testQuestions) } : holdOut(all)
  return (split, random) => (split === "test" ? test : shuffledForever(train, random))
}

async function openRetrievers(options: Resolved<SearchOptions>, world: World | undefined): Promise<Retriever[]> {
  const { requestForm, retrieverTimeout: timeout, retrieverAttempts: attempts, retrieverDelay: delay } = options
  if (options.retriever) {
    const client = { requestForm, timeout, attempts, delay }
    return addressesOf(options.retriever).map((address) => httpRetriever(address, client))
  }
  return [world ? await worldCorpus(world) : await openCorpus(options.corpus!)]
}

/** The embedded world's passages, ready to be searched or served. */
export function worldCorpus(world: World): Promise<Corpus> {
  return memoryCorpus(Array.from(world.values(), (entity, i) => ({ id: String(i), contents: passageOf(entity) })))
}

/** Knows the answer; searches for the question once all the same, to show how it is done. */
function plainExpert({ question, answers }: SearchTask, history: readonly Turn[], _now: Observation): string {
  return history.length === 0 ? `<search> ${question} </search>` : `<answer> ${answers[0]} </answer>`
}
