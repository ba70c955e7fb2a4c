import { estimators } from "../credit/estimators.ts"
import { sftLosses } from "../loss/cloning-losses.ts"
import { losses } from "../loss/losses.ts"
import type { About } from "../options/about.ts"
import type { Algorithm } from "./algorithm.ts"

/** Entries of the shipped estimators and losses, described next to their implementations. Those of origin "gigpo" come first. */
export const shipped: readonly Algorithm[] = [
  ...entriesOf(estimators, "training.estimator.name", "src/credit"),
  ...entriesOf(losses, "training.loss.name", "src/loss"),
  ...entriesOf(sftLosses, "sft.loss.name", "src/loss"),
].sort((a, b) => Number(b.origin === "gigpo") - Number(a.origin === "gigpo"))

function entriesOf(
  named: Readonly<Record<string, { readonly name: string; readonly about: About }>>,
  key: string,
  folder: string,
) {
  return Object.entries(named).map(
    ([selected, { name, about }]): Algorithm => ({
      file: `${folder}/${name}.ts`,
      ...about,
      set: { [key]: selected, ...about.set },
    }),
  )
}
