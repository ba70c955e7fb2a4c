import { once } from "node:events"
import { Command } from "commander"
import { openCorpus } from "../../environment/search/corpus.ts"
import { serveRetriever } from "../../environment/search/server.ts"
import { wholeNumber } from "../arguments.ts"
import { describeFailure } from "../fail.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"

interface RetrieverArguments {
  readonly host: string
  readonly port: number
  readonly topk: number
}

export function retrieverCommand(): Command {
  return new Command("retriever")
    .summary("serve a corpus to search agents over HTTP")
    .description(
      "Reads a corpus, indexes it (BM25) and answers POST /retrieve as Search-R1's retrieval server does, for one query or " +
        "several at once. The environment `search` takes the address as its option `retriever`. Ctrl-C ends it.",
    )
    .argument("<corpus>", 'JSON lines of {"id", "contents"} or {"id", "title", "text"}')
    .option("--host <address>", "whom to answer; 0.0.0.0 is everybody", "127.0.0.1")
    .option("-p, --port <number>", "0 takes any that is free", wholeNumber(0, 65_535), 8000)
    .option("--topk <count>", "passages where a request does not say how many", wholeNumber(1, 1000), 3)
    .action((path, options) => interruptible((signal) => runRetriever(path, options, signal)))
}

async function runRetriever(path: string, options: RetrieverArguments, signal: AbortSignal): Promise<void> {
  const screen = new Screen(process.stderr)
  const count = (passages: number) => `${passages.toLocaleString("en-US")} passages of ${path}`
  const corpus = await openCorpus(path, { signal, onProgress: (passages) => screen.show([count(passages)]) })
  screen.clear()
  const onError = (error: unknown) => screen.print(describeFailure(error))
  const server = await serveRetriever({ ...options, corpus, signal, onError })
  screen.print(`${count(corpus.size)}; Ctrl-C ends it.`)
  process.stdout.write(`${server.url}\n`)
  if (!signal.aborted) await once(signal, "abort")
  await server.close()
}
