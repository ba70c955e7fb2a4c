import { integer, number } from "../../options/field.ts"

/** Option fields with the limits of untrusted statements. */
export const sqlLimitFields = {
  timeLimit: number(
    5,
    "Time limit of a query in seconds; up to 3600. Choose a limit well above the time of normal queries, because queries near the limit " +
      "give results that depend on the machine.",
    { above: 0, max: 3600 },
  ),
  memoryLimit: integer(512, "Memory limit of a query process in MiB; 128 to 65536.", {
    min: 128,
    max: 65_536,
  }),
  processes: integer(2, "Maximum number of query processes; 1 to 256.", { min: 1, max: 256 }),
}
