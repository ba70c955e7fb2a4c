/** What the worker is started with. */
export interface TemplateWorkerData {
  /** Path of @huggingface/jinja's CommonJS entry. */
  readonly jinja: string
  /** The template. */
  readonly source: string
  /** No string or list that the template makes may be longer. */
  readonly maxLength: number
  /** [0]: when the work at hand began, in ns of process.hrtime, 0 while idle. [1]: the id of that work, 0 for parsing. */
  readonly progress: BigInt64Array
}

/** `variables` null asks only whether the template could be parsed. */
export interface TemplateRequest {
  readonly id: number
  readonly variables: Readonly<Record<string, unknown>> | null
}

export type TemplateAnswer = { readonly id: number } & ({ readonly text: string } | { readonly error: string })

/**
 * The worker that renders one chat template. As a string it runs the same from src (where Node cannot load a .ts
 * file) and from dist; whether Node takes strings for CommonJS or for modules hangs on flags, so it is valid as both.
 *
 * A thread does not outlive its process when V8 gives up, and V8 does give up on single huge allocations, time limit
 * or not. So no value may grow: every expression's result is checked.
 */
export const templateWorkerSource: string = `
"use strict"
const { parentPort, workerData } = process.getBuiltinModule("node:worker_threads")
const { jinja, source, maxLength, progress } = workerData
const { Interpreter, Template } = process.getBuiltinModule("node:module").createRequire(jinja)(jinja)

const evaluate = Interpreter.prototype.evaluate
Interpreter.prototype.evaluate = function (statement, environment) {
  const result = evaluate.call(this, statement, environment)
  if (result.value?.length > maxLength) throw new RangeError("it makes a text or a list longer than " + maxLength)
  return result
}

function answer(id, work) {
  progress[1] = BigInt(id)
  Atomics.store(progress, 0, process.hrtime.bigint())
  try {
    return { id, text: work() }
  } catch (error) {
    return { id, error: String(error.message).slice(0, 500) }
  } finally {
    Atomics.store(progress, 0, 0n)
  }
}

let template
const parsed = answer(0, () => {
  template = new Template(source)
  return ""
})
parentPort.on("message", ({ id, variables }) => {
  const settled = parsed.error !== undefined || variables === null
  parentPort.postMessage(settled ? { ...parsed, id } : answer(id, () => template.render(variables)))
})
`
