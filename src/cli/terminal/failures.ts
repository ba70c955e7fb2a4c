import type { FailureReason } from "../../runs/failure-reasons.ts"

/** Formats a failure reason: "2 × sokoban: no server, first in task {"seed":7}". */
export function describeReason({ reason, count, task, environment }: FailureReason): string {
  const whose = reason.startsWith(environment) ? "" : `${environment}: `
  return `${count} × ${whose}${reason.replace(/\.$/, "")}, first in task ${task}`
}
