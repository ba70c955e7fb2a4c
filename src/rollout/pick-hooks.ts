import type { RolloutHooks } from "./hooks.ts"

/** Returns some of the hooks, if present. */
export function pickHooks<Task, Name extends keyof RolloutHooks<Task>>(
  hooks: RolloutHooks<Task> | undefined,
  ...names: readonly Name[]
): Pick<RolloutHooks<Task>, Name> {
  const picked = names.flatMap((name) => {
    const hook = hooks?.[name] as ((...all: unknown[]) => unknown) | undefined
    return hook ? [[name, hook.bind(hooks)]] : []
  })
  return Object.fromEntries(picked)
}
