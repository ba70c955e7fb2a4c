import { fault } from "./fault.ts"
import { asList, asWord, type Expression, readExpression, readTyped, type Typed } from "./s-expression.ts"

/** Household: objects, initial facts and goal. */
export interface Problem {
  readonly objects: readonly Typed[]
  /** Facts that hold at the start, as [predicate, ...ids]; may contain duplicates. */
  readonly init: readonly (readonly string[])[]
  readonly goal: Expression
}

export function readProblem(text: string): Problem {
  const sections = asList(readExpression(text, "pddl_problem"), "pddl_problem")
  if (sections[0] !== "define") fault('pddl_problem must start with "(define"')
  const bodies = new Map<Expression | undefined, readonly Expression[]>()
  for (const section of sections.slice(2)) {
    const [keyword, ...body] = asList(section, "every section of pddl_problem")
    bodies.set(keyword, body)
  }
  const section = (keyword: string) => bodies.get(keyword) ?? fault(`pddl_problem has no section ${keyword}`)
  const init: string[][] = []
  for (const entry of section(":init")) {
    const fact = asList(entry, "every entry of :init")
    // Costs such as (= (total-cost) 0) have no effect. Negated facts do not hold anyway.
    if (fact[0] === "=" || fact[0] === "not") continue
    init.push(fact.map((word) => asWord(word, "every part of a fact in :init")))
  }
  return {
    objects: readTyped(section(":objects"), ":objects"),
    init,
    goal: section(":goal")[0] ?? fault("the section :goal of pddl_problem is empty"),
  }
}
