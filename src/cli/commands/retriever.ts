import { once } from "node:events"
import type { Command } from "commander"
import { openCorpus } from "../../environment/search/corpus.ts"
import { retrieverKeyVariable } from "../../environment/search/retriever-key.ts"
import { serveRetriever } from "../../environment/search/server.ts"
import { keyFromEnvironment, newKey } from "../../http/key.ts"
import { isLoopback } from "../../http/listen.ts"
import { list, wholeNumber } from "../arguments.ts"
import { describeFailure } from "../fail.ts"
import { activity } from "../terminal/activity.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"

interface RetrieverArguments {
  readonly host: string
  readonly port: number
  readonly topk: number
  readonly allowHost?: readonly string[]
}

export function retrieverCommand(command: Command): Command {
  return command
    .description(
      "Indexes a corpus (BM25) and answers POST /retrieve like Search-R1's retrieval server, for one query or " +
        "several at once. The environment `search` takes the address as option `retriever` and the key from " +
        `${retrieverKeyVariable}. If that variable is set, or the address is not a loopback address, clients need the key: the second line of ` +
        "standard output. Ctrl-C stops the server.",
    )
    .argument("<corpus>", 'JSON lines of {"id", "contents"} or {"id", "title", "text"}')
    .option("--host <address>", "address to listen on; 0.0.0.0: all interfaces", "127.0.0.1")
    .option("-p, --port <number>", "port to listen on; 0: any free port", wholeNumber(0, 65_535), 8000)
    .option("--allow-host <name>", "additional host name of this server, e.g. of a proxy; repeatable", list)
    .option("--topk <count>", "passages per query if a request sets no topk", wholeNumber(1, 1000), 3)
    .action((path, options) => interruptible((signal) => runRetriever(path, options, signal)))
}

async function runRetriever(path: string, options: RetrieverArguments, signal: AbortSignal): Promise<void> {
  const { host, port, topk, allowHost: names = [] } = options
  const given = keyFromEnvironment(retrieverKeyVariable)
  const key = given ?? (isLoopback(host) ? undefined : newKey())
  const screen = new Screen(process.stderr)
  const count = (passages: number) => `${passages.toLocaleString("en-US")} passages of ${path}`
  const onProgress = (passages: number) => screen.show([`indexing, ${count(passages)}`])
  const corpus = await openCorpus(path, { signal, onProgress })
  screen.clear()
  const onError = (error: unknown) => screen.print(describeFailure(error))
  const server = await serveRetriever({
    host,
    port,
    names,
    topk,
    corpus,
    signal,
    onError,
    ...(key !== undefined && { key }),
  })
  screen.print(`${count(corpus.size)}; Ctrl-C stops the server.`)
  process.stdout.write(`${[server.url, ...(key === undefined ? [] : [key])].join("\n")}\n`)
  if (!signal.aborted) await activity.idle(() => once(signal, "abort"))
  await server.close()
}
