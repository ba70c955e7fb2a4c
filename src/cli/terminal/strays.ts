import { reason } from "../../environment/contract.ts"

/**
 * Runs `work`, and survives promises that environments left behind without awaiting them: where they reject, Node would end the
 * process. The first is told, the others are counted.
 */
export async function survivingStrays<T>(work: () => Promise<T>, say: (text: string) => void): Promise<T> {
  let strays = 0
  const stray = (error: unknown) => {
    if (++strays > 1) return
    say(
      `A promise that nobody awaited was rejected: ${reason(error)} The work goes on; the environment should await it.`,
    )
  }
  process.on("unhandledRejection", stray)
  try {
    return await work()
  } finally {
    process.off("unhandledRejection", stray)
    if (strays > 1) say(`${strays} promises that nobody awaited were rejected.`)
  }
}
