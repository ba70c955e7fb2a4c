import { join } from "node:path"
import { remoteFields } from "../engine/remote/options.ts"
import { RemoteEngine } from "../engine/remote/remote-engine.ts"
import { readKept } from "../engine/remote/remote-store.ts"
import { only } from "../options/fixed.ts"
import { runFiles } from "../runs/files.ts"
import { GigpoError } from "../util/errors.ts"
import { unlessAborted } from "../util/linked-abort.ts"
import { isUsed } from "./config/modules.ts"
import { readDocument, resolveDocument } from "./config/resolve.ts"
import { checkTrusted } from "./config/trust.ts"
import { resolveModel } from "./model.ts"

/**
 * Downloads the adapter of a run that was trained on a remote engine, in PEFT's layout.
 *
 * @throws GigpoError `BAD_ARGUMENT` for a run that was trained on this machine
 */
export async function exportAdapter(
  run: string,
  into: string,
  { overwrite, trust, signal }: { readonly overwrite: boolean; readonly trust: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const path = join(run, runFiles.config)
  const parsed = await readDocument(path, [])
  const config = resolveDocument(parsed)
  const model = await resolveModel(run)
  const { engine: remote } = config
  if (!remote || isUsed(remote)) throw bad(`The run was trained on this machine; its model is in ${model}`)
  await checkTrusted({ engine: remote }, parsed, path, { trust })
  // The run has stored the results of its probes, and nothing is trained here, so the server is not probed again.
  const capabilities = (await readKept(model))?.probes?.capabilities
  const open = () => RemoteEngine.open(model, { ...only(remote, remoteFields), capabilities })
  await using engine = await unlessAborted(signal, open)
  await engine.saveAdapter(into, { overwrite, signal })
}

const bad = (message: string) => new GigpoError("BAD_ARGUMENT", `${message}.`)
