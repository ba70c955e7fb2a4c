import { join } from "node:path"
import { RemoteEngine } from "../engine/remote/remote-engine.ts"
import { readKept } from "../engine/remote/remote-store.ts"
import { GigpoError } from "../errors.ts"
import { isThere } from "../files/io-error.ts"
import { unlessAborted } from "../linked-abort.ts"
import { runFiles } from "../training/run-files.ts"
import { loadConfig } from "./config/resolve.ts"

/** Brings home what a run on an engine elsewhere has learned, as PEFT has it. */
export async function exportAdapter(
  run: string,
  into: string,
  { overwrite, signal }: { readonly overwrite: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const config = await loadConfig(join(run, runFiles.config))
  const model = join(run, runFiles.model)
  if (!(await isThere(model))) throw bad(`${run} has no model yet: let the run end first`)
  if (!config.engine) throw bad(`What this run has learned is on this machine already: ${model}`)
  // The run has tried its server; nothing is trained here.
  const capabilities = (await readKept(model))?.probes?.capabilities
  const open = () => RemoteEngine.open(model, { ...config.engine!, capabilities })
  await using engine = await unlessAborted(signal, open)
  await engine.saveAdapter(into, { overwrite, signal })
}

const bad = (message: string) => new GigpoError("BAD_ARGUMENT", `${message}.`)
