import { describe, expect, it } from "vitest"
import { Game } from "../../../src/environment/alfworld/game.ts"
import { readGameFile } from "../../../src/environment/alfworld/game-file.ts"
import { type Tiny, tinyFile } from "./tiny.ts"

const bad = (message: string | RegExp) =>
  expect.objectContaining({ code: "BAD_DATA", message: expect.stringMatching(message) })

describe("readGameFile", () => {
  const texts = { pddl_domain: "d", grammar: "g", pddl_problem: "p" }

  it("reads files of both generations", () => {
    const game = { domain: "d", grammar: "g", problem: "p" }
    expect(readGameFile(JSON.stringify(texts), "x")).toEqual({ ...game, solvable: undefined })
    expect(readGameFile(JSON.stringify({ ...texts, solvable: null, walkthrough: null }), "x")).toEqual({
      ...game,
      solvable: null,
    })
    expect(readGameFile(JSON.stringify({ ...texts, solvable: true, walkthrough: ["look"] }), "x")).toEqual({
      ...game,
      solvable: true,
      walkthrough: ["look"],
    })
  })

  it.each([
    ["", /not JSON/],
    ["{", /not JSON/],
    ["[".repeat(100_000), /not JSON/],
    ["[]", /one JSON object/],
    ["null", /one JSON object/],
    ['"text"', /one JSON object/],
    ["{}", /lacks the string "pddl_domain"/],
    [JSON.stringify({ ...texts, grammar: ["g"] }), /lacks the string "grammar"/],
    [JSON.stringify({ ...texts, solvable: "yes" }), /"solvable" must be true, false or null/],
    [JSON.stringify({ ...texts, walkthrough: "look" }), /"walkthrough" must be a list of commands/],
    [JSON.stringify({ ...texts, walkthrough: [1] }), /"walkthrough" must be a list of commands/],
    [" ".repeat(2_000_001), /at most 2000000 characters/],
  ])("rejects %.40j, naming the file", (json, message) => {
    expect(() => readGameFile(json, "kitchen/game.tw-pddl")).toThrow(bad(message))
    expect(() => readGameFile(json, "kitchen/game.tw-pddl")).toThrow(bad(/^kitchen\/game\.tw-pddl: /))
  })
})

const act = (parameters: string, precondition: string, effect = "(done)") => ({
  act: `:parameters (${parameters}) :precondition ${precondition} :effect ${effect}`,
})
const nested = (depth: number, inner: string) => `${"(not ".repeat(depth)}${inner}${")".repeat(depth)}`

describe("Game", () => {
  it.each<[string, Tiny, RegExp]>([
    ["a parenthesis too few", { objects: "(" }, /pddl_problem ends before/],
    ["a parenthesis too many", { objects: "))))" }, /pddl_problem closes a parenthesis/],
    ["two expressions", { goal: "(p))) ((" }, /must be one expression/],
    ["deep nesting", { goal: nested(200, "(p)") }, /pddl_problem is nested more than 100 deep/],
    ["endless nesting", { goal: "(".repeat(100_000) }, /nested more than 100 deep/],
    ["a type that is a list", { objects: "a - (either b c)" }, /a type in :objects must be a word/],
    ["an object not declared", { init: "(p a)" }, /the object a is not declared/],
    ["a word among the facts", { init: "p" }, /every entry of :init must be a list/],
    ["an empty fact", { init: "()" }, /a fact in :init is empty/],
    ["a list in a fact", { objects: "a", init: "(p (a))" }, /every part of a fact/],
    ["arguments that vary", { objects: "a", init: "(p a) (p a a)" }, /p has 1 arguments in one place and 2/],
    ["too many arguments", { objects: "a", init: "(p a a a a a a a a a)" }, /p has too many arguments/],
    ["a word for a goal", { goal: "p" }, /a condition must be a list/],
    ["no goal", { goal: "" }, /:goal of pddl_problem is empty/],
    ["a predicate of the goal not declared", { predicates: "(q ?x)", goal: "(p)" }, /the predicate p is not declared/],
    [
      "a predicate of an action not declared",
      { predicates: "(done)", actions: act("", "(p)") },
      /the predicate p is not declared/,
    ],
    [
      "arguments other than declared",
      { objects: "a", predicates: "(p ?x)", goal: "(p a a)" },
      /the predicate p is declared with 1 arguments, not 2/,
    ],
    ["a word among the predicates", { predicates: "p" }, /every entry of :predicates must be a list/],
    [
      "a goal of a type of which there is nothing",
      { objects: "a - place", goal: "(exists (?x - thing) (done ?x))", actions: act("?x", "()", "(done ?x)") },
      /its goal needs a fact that is false at the start/,
    ],
    [
      "a goal of a kind of which there is nothing",
      {
        objects: "a",
        init: "(mug a)",
        goal: "(exists (?x) (and (done ?x) (pen ?x)))",
        actions: act("?x", "(not (pen ?x))", "(done ?x)"),
      },
      /its goal needs a fact that is false at the start/,
    ],
    ["a variable not declared", { actions: act("?x", "(p ?y)") }, /the variable \?y is not declared/],
    ["= with one side", { objects: "a", goal: "(= a)" }, /= takes two objects/],
    ["an empty (not) in an effect", { actions: act("", "()", "(not)") }, /lacks its fact/],
    ["an action without words", { actions: { "act )(:action x": "" } }, /grammar/],
    ["derived predicates", { actions: { "act) (:derived": "" } }, /derived/],
    ["too many types", { types: Array.from({ length: 1001 }, (_, i) => `t${i}`).join(" ") }, /more than 1000 types/],
    [
      "too many objects",
      { objects: Array.from({ length: 5001 }, (_, i) => `o${i}`).join(" ") },
      /more than 5000 objects/,
    ],
    ["too many cases", { goal: `(and ${"(or (p) (q)) ".repeat(8)})` }, /more than 128 cases/],
    ["too many conditions", { goal: `(and ${"(p) ".repeat(201)})` }, /more than 200 parts/],
    [
      "too many variables",
      { goal: `(exists (${Array.from({ length: 65 }, (_, i) => `?v${i}`).join(" ")}) (p))` },
      /64 variables/,
    ],
    ["a symbol that is not there", { rules: { intro: "#who#" } }, /no symbol who/],
    [
      "a symbol without a rule that applies",
      { rules: { intro: [{ condition: "p(x:thing)", rhs: "" }] } },
      /no rule of intro/,
    ],
    ["a symbol within itself", { rules: { intro: "#intro#" } }, /deeper than 50 symbols/],
    ["a variable that stands for nothing", { rules: { intro: "{x}" } }, /refers to x/],
    ["an attribute that is not known", { rules: { intro: "{x.colour}" } }, /the unknown attribute x\.colour/],
    ["an invalid value", { rules: { intro: "{+}" } }, /the value \{\+\}/],
    ["two values side by side", { rules: { intro: "{'a' 'b'}" } }, /the value \{'a' 'b'\}/],
    ["an invalid query", { rules: { intro: "{'a' | p}" } }, /the condition " p" in the grammar is invalid/],
    ["a text too long", { rules: { intro: "x".repeat(10_001) } }, /longer than 10000 characters/],
    ["a rule without a text", { rules: { intro: [{ rhs: 1 } as never] } }, /must each have a text "rhs"/],
    [
      "symbols that multiply",
      {
        rules: Object.fromEntries(
          Array.from({ length: 40 }, (_, i) => [
            i === 0 ? "intro" : `s${i}`,
            i === 39 ? "x" : `#s${i + 1}##s${i + 1}#`,
          ]),
        ),
      },
      /too much work/,
    ],
    [
      "a condition with a million matches",
      {
        objects: Array.from({ length: 60 }, (_, i) => `o${i}`).join(" "),
        actions: act("?a ?b ?c ?d ?e - object", "(not (p ?a ?b ?c ?d ?e))"),
      },
      /too much work/,
    ],
    [
      "a forall over everything thrice",
      {
        objects: Array.from({ length: 1000 }, (_, i) => `o${i}`).join(" "),
        goal: "(forall (?a ?b ?c) (= ?c ?c))",
      },
      /too much work/,
    ],
    [
      "variables within variables",
      { goal: `${"(forall (?x) (exists (?y) ".repeat(40)}(p)${"))".repeat(40)}` },
      /more than 64 variables/,
    ],
  ])("rejects %s", (_, game, message) => {
    const play = () => Game.parse(tinyFile(game), "kitchen").start().won
    expect(play).toThrow(bad(message))
    expect(play).toThrow(bad(/^kitchen: .*; fetch or generate the game again\.$/s))
  })

  const file = tinyFile({})
  it.each([
    ["an empty domain", { domain: "" }, /pddl_domain must be one expression/],
    ["a word for a domain", { domain: "domain" }, /pddl_domain must be a list/],
    ["a domain that does not begin as one", { domain: "(domain x)" }, /must start with "\(define"/],
    ["a problem that does not begin as one", { problem: "(problem x)" }, /must start with "\(define"/],
    ["a problem without facts", { problem: "(define (problem p) (:objects) (:goal (p)))" }, /no section :init/],
    ["an action without a name", { domain: "(define (domain d) (:action))" }, /the name of an :action/],
    ["an empty grammar", { grammar: "" }, /no symbol intro/],
    ["a grammar of other words", { grammar: "rules :: 1;" }, /"rules" instead of "grammar" or "action"/],
    ["a grammar that stops", { grammar: "action look {" }, /ends too early/],
    ["a grammar that does not quote", { grammar: "grammar :: {};" }, /quotation marks/],
    ["a grammar of strange characters", { grammar: "grammar :: §" }, /cannot be read at character 11/],
    ["rules that are not JSON", { grammar: 'grammar :: """{""";' }, /not JSON/],
    ["rules that are no object", { grammar: 'grammar :: """null""";' }, /must be an object/],
    ["an action without a template", { grammar: 'action look { feedback :: "x"; }' }, /look has no template/],
  ])("rejects %s", (_, texts, message) => {
    expect(() => Game.parse({ ...file, ...texts }, "kitchen").start()).toThrow(bad(message))
  })

  it("rejects an action without a wording in the grammar", () => {
    const { domain, problem } = tinyFile({ actions: act("", "()") })
    expect(() => Game.parse({ ...file, domain, problem })).toThrow(bad(/the grammar does not know the action act/))
  })

  it.each([
    ["parentheses", "(".repeat(1_000_000)],
    ["lists", "()".repeat(500_000)],
    ["words", "a ".repeat(500_000)],
    ["quotation marks", '"'.repeat(1_000_000)],
    ["braces", "{'".repeat(500_000)],
    ["lines", "\n".repeat(1_000_000)],
    ["hash signs", "#\n".repeat(500_000)],
  ])("does not stand still before a megabyte of %s, wherever it comes", (_, junk) => {
    const good = { grammar: 'grammar :: """{"intro": [{"rhs": "Hello."}]}""";' }
    for (const texts of [
      { domain: junk },
      { domain: `(define (domain d) (:types ${junk}) (:action act :precondition ${junk}))` },
      { problem: junk },
      { problem: `(define (problem p) (:objects ${junk}) (:init ${junk}) (:goal (and ${junk})))` },
      { grammar: junk },
      { grammar: `grammar :: """${junk}""";` },
      { grammar: `grammar :: """${JSON.stringify({ intro: [{ condition: junk, rhs: junk }] })}""";` },
    ]) {
      try {
        Game.parse({ ...file, ...good, ...texts }, "kitchen").start()
      } catch (error) {
        expect(error).toEqual(bad(/^kitchen: /))
      }
    }
  })
})
