// docs/algorithms.md, of the table in src/algorithms; test/algorithms holds the page to it.
//   npm run docs:algorithms
import { writeFileSync } from "node:fs"
import { pathToFileURL } from "node:url"

/** The page, as Markdown. The table is handed in, so that a test can give that of the sources. */
export function pageOf({ algorithms, askedFor, changes, standings }) {
  const sections = Object.entries(changes).map(([change, title]) => {
    const rows = algorithms.filter((algorithm) => algorithm.changes[0] === change).map((one) => row(one, askedFor(one)))
    return [`## ${title}`, table([["system", "equation", "source", "ours", "standing"], ...rows])].join("\n\n")
  })
  const meanings = Object.entries(standings).map(([standing, meaning]) => `- **${standing}**: ${meaning}`)
  return `${[intro, meanings.join("\n"), ...sections].join("\n\n")}\n`
}

const intro = `# Algorithms

GiGPO, every system that cites or extends it, as far as these were found, and what they are compared with, each under what it changes first.
\`npx gigpo algorithms\` prints the same in the terminal, \`npx gigpo algorithms hgpo\` one of them, and \`npx gigpo algorithms credit\` those that
change credit. What stands under “ours” is what a configuration sets, in the form that \`--set\` takes, or what is handed to \`train\`. What
options, losses and engines ask of each other is in [baselines.md](baselines.md), hooks, memories and curricula in
[extending.md](extending.md). Every entry that is there takes part in a test that trains with it, and
\`npm run bench:algorithms\` trains each estimator and loss briefly on Sokoban and the number line. This page is made by \`npm run docs:algorithms\`.

How each stands:`

function row({ system, equation, source, file, standing, note, changes }, asked) {
  const ours = [...(file ? [`[${file}](../${file})`] : []), ...asked.map((one) => `\`${one}\``)]
  const also = changes.length > 1 ? [`Also changes ${changes.slice(1).join(", ")}.`] : []
  return [
    `**${system}**`,
    equation ? `\`${equation}\`` : "",
    source,
    ours.join("<br>"),
    [`${standing}.`, ...(note ? [note] : []), ...also].join(" "),
  ]
}

function table([header, ...rows]) {
  return [header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [{ algorithms }, { askedFor }, { changes, standings }] = await Promise.all(
    ["algorithms", "asked", "algorithm"].map((name) => import(`../modules/algorithms/${name}.js`)),
  )
  writeFileSync(new URL("../docs/algorithms.md", import.meta.url), pageOf({ algorithms, askedFor, changes, standings }))
}
