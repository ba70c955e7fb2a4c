/**
 * Rule of the TextWorld grammar with the commands and observations of a household. The first rule whose condition matches the facts
 * applies. `{..}` is an expression, `[{x | query}]` the list of x over all matches, `#..#` another symbol.
 *
 * The greeting and the feedback sentences are those of ALFWorld's engine.
 */
interface Rule {
  readonly condition?: string
  readonly rhs: string
}

/** Wording of the put command: `move mug 1 to desk 1` in ALFWorld 0.4, `put mug 1 in/on desk 1` in 0.2. */
export type Wording = "move" | "put"

export function grammarText(task: string, wording: Wording): string {
  const actions = Object.entries(commands(wording)).map(
    ([name, template]) => `action ${name} {\n  template :: "${template}";\n  feedback :: "#${name}.feedback#";\n}\n`,
  )
  const rules = JSON.stringify(feedback(task, wording), undefined, 2)
  return [`grammar :: """\n${rules}\n""";\n`, ...actions].join("\n")
}

function commands(wording: Wording): Record<string, string> {
  return {
    look: "look",
    inventory: "inventory",
    help: "help",
    examineReceptacle: "examine {r}",
    examineObject: "examine {o}",
    GotoLocation: "go to {r}",
    OpenObject: "open {r}",
    CloseObject: "close {r}",
    PickupObject: "take {o} from {r}",
    PutObject: wording === "move" ? "move {o} to {r}" : "put {o} in/on {r}",
    CleanObject: "clean {o} with {r}",
    HeatObject: "heat {o} with {r}",
    CoolObject: "cool {o} with {r}",
    ToggleObject: "use {o}",
    SliceObject: "slice {co} with {ko}",
  }
}

function feedback(task: string, wording: Wording): Record<string, Rule[]> {
  const inside = list("o", "inreceptacle(o:object, r:receptacle)")
  const facing = "atlocation(a:agent, l:location) & receptacleatlocation(r:receptacle, l:location)"
  const loose = `${facing} & objectatlocation(o:object, l:location) & not_inreceptacle(o:object, r:receptacle)`
  return {
    intro: [{ rhs: "-= Welcome to TextWorld, ALFRED! =-\n\n#look.feedback#\n\n#task#" }],
    task: [{ rhs: `Your task is to: ${task}.` }],

    // After an action, the location is bound. At the start it is not, so the second rule applies and lists the whole room.
    "look.feedback": [
      { condition: facing, rhs: `You are facing the [{r.name | ${facing}}]. Next to it, you see #loose#.` },
      {
        rhs: `You are in the middle of a room. Looking quickly around you, you see ${list("r", "receptacleatlocation(r:receptacle, l:location)")}.`,
      },
    ],
    loose: [{ condition: loose, rhs: list("o", loose) }, { rhs: "nothing" }],
    list_empty: [{ rhs: "nothing" }],
    list_separator: [{ rhs: ", " }],
    list_last_separator: [{ rhs: ", and " }],

    "inventory.feedback": [
      { condition: "holdsany(a:agent)", rhs: `You are carrying: ${list("o", "holds(a:agent, o:object)")}.` },
      { rhs: "You are not carrying anything." },
    ],
    "help.feedback": [{ rhs: helpText(wording) }],
    "examineReceptacle.feedback": [
      {
        condition: "openable(r:receptacle) & opened(r:receptacle)",
        rhs: `The {r.name} is open. In it, you see ${inside}.`,
      },
      { condition: "openable(r:receptacle)", rhs: "The {r.name} is closed." },
      { rhs: `On the {r.name}, you see ${inside}.` },
    ],
    "examineObject.feedback": [
      {
        condition: "isreceptacleobject(o:object)",
        rhs: `This is a normal {o.name}. In it, you see ${list("o2", "inreceptacleobject(o2:object, o:object)")}.`,
      },
      ...conditions.map(({ facts, word }) => ({ condition: all([...facts, "issliced"]), rhs: says(`${word} sliced`) })),
      ...conditions.map(({ facts, word }) => ({ condition: all(facts), rhs: says(word === "cool" ? "cold" : word) })),
      { condition: all(["toggleable", "istoggled"]), rhs: "This {o.name} is on." },
      { condition: all(["toggleable", "not_istoggled"]), rhs: "This {o.name} is off." },
      { condition: all(["issliced"]), rhs: says("sliced") },
      { rhs: "There's nothing special about {o.name}." },
    ],

    "GotoLocation.feedback": [
      { rhs: `You arrive at {${wording === "move" ? "r" : "lend"}.name}. #examineReceptacle.feedback#` },
    ],
    "OpenObject.feedback": [{ rhs: "You open the {r.name}. #examineReceptacle.feedback#" }],
    "CloseObject.feedback": [{ rhs: "You close the {r.name}." }],
    "PickupObject.feedback": [{ rhs: "You pick up the {o.name} from the {r.name}." }],
    "PutObject.feedback": [
      {
        rhs: wording === "move" ? "You move the {o.name} to the {r.name}." : "You put the {o.name} in/on the {r.name}.",
      },
    ],
    "CleanObject.feedback": [{ rhs: "You clean the {o.name} using the {r.name}." }],
    "HeatObject.feedback": [{ rhs: "You heat the {o.name} using the {r.name}." }],
    "CoolObject.feedback": [{ rhs: "You cool the {o.name} using the {r.name}." }],
    "ToggleObject.feedback": [{ rhs: "You turn on the {o.name}." }],
    "SliceObject.feedback": [{ rhs: "You sliced the {co.name} with the {ko.name}." }],
  }
}

/** Words for a held object by its facts, the most specific first. */
const conditions = [
  { facts: ["isclean", "ishot"], word: "hot and clean" },
  { facts: ["isclean", "iscool"], word: "cool and clean" },
  { facts: ["isclean"], word: "clean" },
  { facts: ["ishot"], word: "hot" },
  { facts: ["iscool"], word: "cool" },
] as const

function all(predicates: readonly string[]): string {
  return predicates.map((predicate) => `${predicate}(o:object)`).join(" & ")
}

function says(word: string): string {
  return `This is a ${word} {o.name}.`
}

function list(variable: string, query: string): string {
  return `[{${variable}.indefinite + ' ' + ${variable}.name | ${query}}]`
}

function helpText(wording: Wording): string {
  const { help: _, ...others } = commands(wording)
  const named = Object.values(others).map((template) =>
    template.replaceAll("{r}", "(receptacle)").replaceAll(/\{(o|co|ko)\}/g, "(object)"),
  )
  return `What you can do: ${named.join(", ")}.`
}
