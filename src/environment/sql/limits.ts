import { number, whole } from "../../options/field.ts"

/** What statements of whoever may take. */
export const sqlLimitFields = {
  timeLimit: number(
    5,
    "Seconds that one query may take, to be chosen well above what honest ones do: what happens then depends on the machine. Up to 3600.",
    { above: 0, most: 3600 },
  ),
  memoryLimit: whole(512, "MiB of memory that a process may take in which queries run; 128 to 65536.", {
    least: 128,
    most: 65_536,
  }),
  processes: whole(2, "Most processes in which queries run; 1 to 256.", { least: 1, most: 256 }),
}
