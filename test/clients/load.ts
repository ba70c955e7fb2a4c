import { existsSync } from "node:fs"

const here = (path: string) => existsSync(new URL(path, import.meta.url))

/** Clients of the examples: `npm ci --prefix examples/agents`. */
export const installed: boolean = here("../../examples/agents/node_modules")
/** Further clients, beside this file: `npm ci --prefix test/clients`. */
export const furtherInstalled: boolean = installed && here("node_modules")

export { load } from "../../examples/agents/load.ts"

/** A package of the further clients. */
export async function loadFurther(name: string) {
  return await import(/* @vite-ignore */ name)
}
