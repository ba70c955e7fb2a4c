import { createReplicas } from "../../src/engine/native/replicated.ts"
import { type NativeEngine, native } from "../../src/native/native.ts"

/**
 * Lets every policy opened during `work` have `count` replicas on the CPU. `change` may replace calls of the replica with this rank.
 */
export async function withReplicas<T>(
  count: number,
  work: () => Promise<T>,
  change: (engine: NativeEngine, rank: number) => void = () => {},
): Promise<T> {
  const addon = native() as { Engine: ReturnType<typeof native>["Engine"] }
  const { Engine } = addon
  class Replica extends Engine {
    constructor(...[model, options]: ConstructorParameters<typeof Engine>) {
      super(model, options)
      change(this, options.rank!)
    }
  }
  function Replicated(...[model, options]: ConstructorParameters<typeof Engine>): NativeEngine {
    addon.Engine = Replica
    try {
      return createReplicas(
        model,
        Array.from({ length: count }, (_, rank) => ({ name: `cpu:${rank}`, options })),
      )
    } finally {
      addon.Engine = Replicated as unknown as typeof Engine
    }
  }
  addon.Engine = Replicated as unknown as typeof Engine
  try {
    return await work()
  } finally {
    addon.Engine = Engine
  }
}
