import { describe, expect, it } from "vitest"
import { Game } from "../../../src/environment/alfworld/game.ts"
import { type Tiny, tiny, tinyFile } from "./tiny.ts"

const shelf = { types: "place thing agent", objects: "c_bar_ a_bar_ b_bar_ - thing shelf - place me - agent" }

/** What the rules make of `#intro#`. */
function tell(intro: string, more: Tiny = {}): string {
  const rules = { list_empty: "nothing", list_separator: ", ", list_last_separator: ", and ", ...more.rules }
  return tiny({ ...shelf, ...more, rules: { ...rules, intro } }).text
}

describe("texts", () => {
  it.each([
    ["plain", "plain"],
    ["  \n white space at the start only \n", "white space at the start only \n"],
    ["a lone } and [ and # and ] stand for themselves", "a lone } and [ and # and ] stand for themselves"],
    ["#greeting#, #greeting#!", "hello, hello!"],
    ["{'a' + \" b\" + #greeting#}", "a bhello"],
    ["{'' or '' or 'third' or 'fourth'}", "third"],
    ["{'' or ''}", ""],
    ["{x.name | on(x:thing, s:place)}", "c 1a 3"],
    ["[{x.indefinite + ' ' + x.name | on(x:thing, s:place)}].", "a a 1, and a c 1."],
  ])("%j tells %j", (text, told) => {
    const init = "(on c_bar_ shelf) (on a_bar_ shelf)"
    const more = { init, rules: { greeting: "hello" }, objects: "c_bar_ a_bar_ - thing shelf - place" }
    expect(tell(text, more)).toBe(told === "c 1a 3" ? "a 1c 1" : told)
  })

  it.each([
    ["", "nothing"],
    ["(on b_bar_ shelf)", "b 1"],
    ["(on c_bar_ shelf) (on b_bar_ shelf)", "b 1, and c 1"],
    ["(on c_bar_ shelf) (on b_bar_ shelf) (on a_bar_ shelf) (on c_bar_ shelf)", "a 1, b 1, and c 1"],
  ])("list what %j says in the order of ids", (init, told) => {
    expect(tell("[{x.name | on(x:thing, s:place)}]", { init })).toBe(told)
  })

  it("order matches by the facts of the query, first to last", () => {
    const init = "(on b_bar_ shelf) (on a_bar_ shelf) (near a_bar_ c_bar_) (near b_bar_ c_bar_) (near b_bar_ a_bar_)"
    const list = "[{x.id + y.id | on(x:thing, s:place) & near(x:thing, y:thing)}]"
    expect(tell(list, { init })).toBe("a_bar_c_bar_, b_bar_a_bar_, and b_bar_c_bar_")
  })

  it("never bind two placeholders to the same object", () => {
    const init = "(near a_bar_ a_bar_) (near a_bar_ b_bar_) (near c_bar_ c_bar_)"
    expect(tell("[{x.id + y.id | near(x:thing, y:thing)}]", { init })).toBe("a_bar_b_bar_")
    expect(tell("[{x.id | near(x:thing, x:thing)}]", { init })).toBe("a_bar_, and c_bar_")
  })

  it("bind only objects of the type", () => {
    const init = "(on a_bar_ shelf) (on me shelf)"
    expect(tell("[{x.id | on(x:thing, s:place)}]", { init })).toBe("a_bar_")
    expect(tell("[{x.id | on(x:object, s:place)}]", { init })).toBe("a_bar_, and me")
    expect(tell("[{x.id | on(x:robot, s:place)}]", { init })).toBe("nothing")
  })

  it("give objects without facts an empty name, so that `or` can use the id", () => {
    const world = tiny({
      ...shelf,
      actions: { look: ":parameters (?x - place) :precondition () :effect (seen ?x)" },
      wordings: { look: ["look", "{x.name or x.id}|{x.name}|{x.id}"] },
    })
    expect(world.step("look")).toBe("shelf||shelf")
  })

  it("use the first rule whose condition is satisfiable, without keeping its bindings", () => {
    const rules = {
      state: [
        { condition: "broken(x:thing)", rhs: "broken" },
        { condition: "on(x:thing, s:place)", rhs: "on it: [{x.name | on(x:thing, s:place)}]" },
        { rhs: "empty" },
      ],
    }
    expect(tell("#state#", { rules })).toBe("empty")
    expect(tell("#state#", { rules, init: "(on a_bar_ shelf) (on b_bar_ shelf)" })).toBe("on it: a 1, and b 1")
    expect(tell("#state#", { rules, init: "(on a_bar_ shelf) (broken c_bar_)" })).toBe("broken")
  })

  it("pass the objects of a list to the symbols in it", () => {
    const rules = { "told(x)": [{ condition: "broken(x:thing)", rhs: "broken {x}" }, { rhs: "{x}" }] }
    const init = "(on a_bar_ shelf) (on b_bar_ shelf) (broken b_bar_)"
    expect(tell("[{#told(x)# | on(x:thing, s:place)}]", { rules, init })).toBe("a 1, and broken b 1")
  })

  it("evaluate negation only for facts that were removed", () => {
    const unmade = "[{x.name | not_on(x:thing, s:place)}]"
    const world = tiny({
      ...shelf,
      init: "(on a_bar_ shelf) (is b_bar_)",
      actions: { take: ":parameters (?x - thing ?s - place) :precondition (on ?x ?s) :effect (not (on ?x ?s))" },
      wordings: { take: ["take {x}", unmade] },
      rules: { intro: unmade, list_empty: "nothing" },
    })
    expect(world.text).toBe("nothing")
    expect(world.step("take a 1")).toBe("a 1")
  })

  it("bind the parameters of the action, by name and type", () => {
    const world = tiny({
      ...shelf,
      init: "(on a_bar_ shelf) (on b_bar_ shelf) (near a_bar_ b_bar_) (near b_bar_ c_bar_)",
      rules: { list_empty: "nothing", list_last_separator: ", and " },
      actions: { see: ":parameters (?X - thing) :precondition (on ?x shelf) :effect (seen ?x)" },
      wordings: {
        see: [
          "see {x}",
          "[{x.name | on(x:thing, s:place)}]; [{y.name | on(y:thing, s:place)}]; [{z.name | near(x:object, z:thing)}]",
        ],
      },
    })
    // x is what is seen, y another thing, but x of another type is another placeholder, free to be b.
    expect(world.step("see a 1")).toBe("a 1; b 1; c 1")
  })

  it("do not keep parameters of earlier actions", () => {
    const world = tiny({
      ...shelf,
      init: "(on a_bar_ shelf) (on b_bar_ shelf)",
      rules: { list_last_separator: ", and " },
      actions: {
        count: ":parameters (?m - agent) :precondition () :effect (counted ?m)",
        see: ":parameters (?x - thing) :precondition (on ?x shelf) :effect (seen ?x)",
      },
      wordings: { count: ["count", "[{x.name | on(x:thing, s:place)}]"], see: ["see {x}", "Seen."] },
    })
    world.step("see a 1")
    expect(world.step("count")).toBe("a 1, and b 1")
  })

  it("can contain many symbols", () => {
    expect(tell("#o#".repeat(200), { rules: { o: "o" } })).toBe("o".repeat(200))
  })

  it("are written after the effect of the action, the commands before", () => {
    const world = tiny({
      ...shelf,
      init: "(on a_bar_ shelf)",
      rules: { state: [{ condition: "on(x:thing, s:place)", rhs: "on" }, { rhs: "off" }] },
      actions: { take: ":parameters (?x - thing ?s - place) :precondition (on ?x ?s) :effect (not (on ?x ?s))" },
      wordings: { take: ["take while #state#", "#state#"] },
    })
    expect(world.admissible()).toEqual(["take while on"])
    expect(world.step("take while on")).toBe("off")
  })
})

describe("the text of a grammar", () => {
  const told = (grammar: string) => Game.parse({ ...tinyFile(shelf), grammar }).start().text

  it("can redefine a symbol: later rules replace earlier ones", () => {
    expect(told('grammar :: """{"intro": [{"rhs": "one"}]}""";\ngrammar :: """{"intro": [{"rhs": "two"}]}""";')).toBe(
      "two",
    )
  })

  it("can contain comments between actions and in their rules", () => {
    const file = tinyFile({
      ...shelf,
      actions: { nap: ":parameters (?x - agent) :precondition () :effect (rested ?x)" },
    })
    const grammar = `# A comment "with marks
      grammar :: """{"intro": [{"rhs": "#name#"}]}""";
      action NAP { feedback :: "Zzz."; template :: "nap"; grammar :: """
        # "name": [{"rhs": "no"}],
        {
          # another
          "name": [{"rhs": "yes"}]
        }
      """; }`
    const world = Game.parse({ ...file, grammar }).start()
    expect([world.text, world.step("nap")]).toEqual(["yes", "Zzz."])
  })

  it("can contain unparsable rules, if they are not used", () => {
    expect(tell("fine", { rules: { bad: "{x. | | }", worse: [{ condition: "((", rhs: "" }] } })).toBe("fine")
  })
})
