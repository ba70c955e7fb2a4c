import { type Command, InvalidArgumentError, Option } from "commander"
import { stringify } from "../../json/text.ts"
import { GigpoError } from "../../util/errors.ts"
import { visible } from "../../util/visible.ts"
import { checkRun } from "../../view/runs.ts"
import { type EpisodeReader, recordedEpisodes, recordedEvaluations } from "../../view/serve/episode-reader.ts"
import { wholeNumber } from "../arguments.ts"
import { browse } from "../browse.ts"
import { someRecorded } from "../recorded.ts"
import { activity } from "../terminal/activity.ts"
import { Browser } from "../terminal/browser.ts"
import { type EpisodeFilter, episodeLines, type ListedEpisode, listEpisodes } from "../terminal/episode-list.ts"
import { episodeText } from "../terminal/episode-text.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson, printJsonText } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"

type Place = Pick<ListedEpisode, "iteration" | "group" | "member">

interface EpisodesArguments {
  readonly iteration?: number
  readonly task?: string
  readonly evaluation?: boolean
  readonly unsuccessful?: boolean
  readonly succeeded?: boolean
  readonly show?: Place
  readonly full?: boolean
  readonly json?: boolean
}

/** Maximum characters of a text without --full. */
const usual = 4000

export function episodesCommand(command: Command): Command {
  return command
    .description(
      "Lists the recorded episodes of an iteration; --show prints one as a conversation, with the reward of each step and the actions and " +
        "returns of other steps in the same anchor state. On a terminal, select an episode with ↑ and ↓, enter, ← and q.",
    )
    .argument("<run>", "folder of a run")
    .addOption(
      new Option("--iteration <number>", "iteration; default: the newest").argParser(wholeNumber(0, 999_999_999)),
    )
    .option(
      "--evaluation",
      "episodes of the evaluation after the iteration (0: before the first) instead of its training",
    )
    .option("--task <text>", "only episodes of tasks that contain this text")
    .addOption(
      new Option("--unsuccessful", "only episodes without success, including failed and excluded ones").conflicts(
        "succeeded",
      ),
    )
    .option("--succeeded", "only episodes that succeeded")
    .addOption(
      new Option("--show <id>", "print one episode: iteration/group/episode, as in the list").argParser(parseId),
    )
    .option("--full", "do not shorten long texts")
    .option("--json", "print the list, or the episode's group, as one JSON line")
    .action((run, options) => interruptible((signal) => runEpisodes(run, options, signal)))
}

function parseId(text: string): Place {
  const [, ...numbers] = /^(\d{1,9})\/(\d{1,9})\/(\d{1,9})$/.exec(text) ?? []
  if (numbers.length === 0) throw new InvalidArgumentError("It must be iteration/group/episode, as in 12/3/5.")
  const [iteration, group, member] = numbers.map(Number) as [number, number, number]
  return { iteration, group, member }
}

async function runEpisodes(run: string, options: EpisodesArguments, signal: AbortSignal): Promise<void> {
  await checkRun(run)
  const { show, json = false, full = false } = options
  const reader = options.evaluation ? recordedEvaluations : recordedEpisodes
  const longest = full ? Number.POSITIVE_INFINITY : usual
  const screen = new Screen(process.stdout, json ? { live: false } : {})
  if (show) {
    if (json) printJsonText(stringify(await groupOf(reader, run, show)))
    else screen.print(await textOf(reader, run, show, longest))
    return
  }
  const filter: EpisodeFilter = { task: options.task, succeeded: options.succeeded ?? (options.unsuccessful && false) }
  const { iteration, all, listed } = await find(reader, run, options.iteration, filter)
  if (json) return void printJson(listed)
  if (listed.length === 0) return screen.print(`None of the ${all} episodes of iteration ${iteration} match.`)
  const [head, ...lines] = episodeLines(listed).map(visible) as [string, ...string[]]
  if (!screen.live || !process.stdin.isTTY) return screen.print([head, ...lines].join("\n"))
  const browser = new Browser({ head, lines, open: (index) => textOf(reader, run, listed[index]!, longest) })
  await activity.idle(() => browse(browser, screen, process.stdin, signal))
}

async function find(
  reader: EpisodeReader,
  run: string,
  wanted: number | undefined,
  filter: EpisodeFilter,
): Promise<{ iteration: number; all: number; listed: ListedEpisode[] }> {
  const recorded = await someRecorded(run, reader === recordedEvaluations ? "evaluation" : "training")
  const iteration = wanted ?? recorded.at(-1)!
  const summary = (await reader.readRecordedIterations(run, { from: iteration, to: iteration }))[0]
  if (summary) return { iteration, all: summary.group.length, listed: listEpisodes(summary, filter) }
  const what =
    reader === recordedEvaluations
      ? `the evaluation after iteration ${iteration} were recorded; recorded are those after ${recorded.join(", ")}`
      : `iteration ${iteration} were recorded; recorded are iterations ${recorded[0]} to ${recorded.at(-1)}`
  throw new GigpoError("BAD_ARGUMENT", `No episodes of ${what}.`)
}

async function groupOf(reader: EpisodeReader, run: string, { iteration, group }: Place) {
  const found = await reader.readGroup(run, iteration, group)
  if (found) return found
  throw new GigpoError("BAD_ARGUMENT", `Group ${group} of iteration ${iteration} was not recorded in ${run}.`)
}

async function textOf(reader: EpisodeReader, run: string, place: Place, longest: number): Promise<string> {
  const group = await groupOf(reader, run, place)
  const episode = group.episodes.find(({ member }) => member === place.member)
  if (episode) return episodeText(group, episode, longest)
  const count = group.episodes.length
  throw new GigpoError(
    "BAD_ARGUMENT",
    `Group ${place.group} of iteration ${place.iteration} has ${count} episodes; member ${place.member} is not in 0 to ${count - 1}.`,
  )
}
