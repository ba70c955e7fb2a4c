import { readdirSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { contentWords } from "../../../src/environment/webshop/nouns.ts"
import { judge } from "../../../src/environment/webshop/reward.ts"
import { readGoal } from "../../replay/webshop.ts"
import { folder, present, readLines, reason } from "./data.ts"
import { product } from "./world.ts"

interface Visit {
  readonly page: string
  readonly goal: Parameters<typeof readGoal>[0]
  readonly content?: { asin: string; options: Record<string, string>; price: number }
  readonly reward?: number
  readonly reward_info?: { r_type: number; r_att: number; r_option?: number; r_price: boolean }
}

const names = present ? readdirSync(`${folder}human_trajs`) : []

// The products are of the full catalogue, so only what needs no product can be judged again.
describe.skipIf(!present)(`nine people in the full shop${reason}`, () => {
  it.each(names)("%s: options, price and total reward", (name) => {
    const visits = readLines<Visit>(`human_trajs/${name}`)
    const done = visits.at(-1)!
    expect([visits[0]!.page, done.page]).toEqual(["index", "done"])
    const goal = readGoal(done.goal)
    const limit = /, and price lower than (\d+\.\d\d) dollars$/.exec(goal.instruction)
    expect(Number(limit?.[1])).toBe(goal.priceUpper)

    const { r_type, r_att, r_option, r_price } = done.reward_info!
    const { content } = done
    const purchase = { product: product(), price: content!.price, options: new Map(Object.entries(content!.options)) }
    const verdict = judge(purchase, goal, contentWords)
    expect(verdict.priceMet).toBe(r_price)
    expect(verdict.options.of === 0 ? undefined : verdict.options.met / verdict.options.of).toBe(r_option)
    const met = r_att * goal.attributes.length + verdict.options.met + Number(verdict.priceMet)
    expect((met / (goal.attributes.length + verdict.options.of + 1)) * r_type).toBeCloseTo(done.reward!, 12)
  })

  it("are complete", () => expect(names).toHaveLength(9))
})
