import type { Advice } from "./explore.ts"

/** Short reasoning for a command. Depends only on the command and on the kind of object that is searched for. */
export function thoughtOf({ command, sought }: Advice): string {
  const [, verb, first, second] =
    /^(go to|open|examine|take|move|put|clean|heat|cool|use) (.+?)(?: (?:from|to|in\/on|with) (.+))?$/.exec(command) ??
    []
  switch (verb) {
    case "go to":
      return sought === undefined ? `Next I need the ${first}.` : `I look for a ${sought}: the ${first} may have one.`
    case "open":
      return `The ${first} is closed.`
    case "examine":
      return `I look for a ${sought}: the ${first} is within reach.`
    case "take":
      return `The ${first} is what I need.`
    case "move":
    case "put":
      return `The ${first} goes to the ${second}.`
    case "use":
      return `The ${first} gives the light.`
    default:
      return `The ${second} can ${verb} the ${first}.`
  }
}
