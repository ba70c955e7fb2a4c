import { integer, number } from "../../options/field.ts"

/** What statements of whoever may take. */
export const sqlLimitFields = {
  timeLimit: number(
    5,
    "Seconds that one query may take, to be chosen well above what honest ones do: what happens then depends on the machine. Up to 3600.",
    { above: 0, max: 3600 },
  ),
  memoryLimit: integer(512, "MiB of memory that a process may take in which queries run; 128 to 65536.", {
    min: 128,
    max: 65_536,
  }),
  processes: integer(2, "Most processes in which queries run; 1 to 256.", { min: 1, max: 256 }),
}
