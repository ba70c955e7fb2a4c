// Errors of an environment or an agent fail one episode. Errors of the policy or a hook end the rollout.

/** Error that ends the rollout. It passes the places where errors of episodes are caught. */
export class RolloutFault extends Error {
  constructor(cause: unknown) {
    super("The rollout cannot continue.", { cause })
  }
}

/** Makes any error of the work end the rollout. */
export async function orEndRollout<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw new RolloutFault(error)
  }
}
