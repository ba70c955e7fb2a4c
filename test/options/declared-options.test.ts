import { expect, it } from "vitest"
// @ts-expect-error a script without declarations
import { optionsIn } from "../../scripts/declared-options.mjs"

it("an interface after a table of options is not part of the table", () => {
  const text = `export declare const table: {
    frequent: Field<number, "Number of states.">;
};
export interface Result {
    readonly frequent: readonly string[];
}
`
  const paths = (optionsIn(text) as readonly { readonly path: readonly string[] }[]).map(({ path }) => path.join("."))
  expect(paths).toEqual(["table", "table.frequent", "frequent"])
})
