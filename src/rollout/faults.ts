// Whose fault it is: an environment's or an agent's costs one episode, the policy's or a hook's ends the rollout.

/** Carries what ends the rollout past the places where the other faults are caught. */
export class RolloutFault extends Error {
  constructor(cause: unknown) {
    super("The rollout cannot go on.", { cause })
  }
}

/** Whatever goes wrong in this work ends the rollout. */
export async function orEndRollout<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw new RolloutFault(error)
  }
}
