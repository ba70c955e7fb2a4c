import type { Along } from "../../data/curves.ts"
import type { Route } from "../view.ts"

/** Settings of the curves, which are part of the address. */
export interface Choice {
  /** Names of metrics; undefined for the default. */
  readonly metrics: readonly string[] | undefined
  /** Weight of earlier values, from 0 to below 1. */
  readonly smoothing: number
  readonly logarithmic: boolean
  readonly along: Along
}

export function readChoice({ query }: Route): Choice {
  const smoothing = Number(query.smooth ?? 0)
  return {
    metrics: query.metrics?.split(" ").filter(Boolean).map(decodeURIComponent),
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
    logarithmic: query.scale === "log",
    along: query.along === "time" ? "time" : "iteration",
  }
}

export function routeOf({ metrics, smoothing, logarithmic, along }: Choice): Route {
  return {
    path: ["curves"],
    query: {
      ...(metrics && { metrics: metrics.map(encodeURIComponent).join(" ") }),
      ...(smoothing > 0 && { smooth: String(smoothing) }),
      ...(logarithmic && { scale: "log" }),
      ...(along !== "iteration" && { along }),
    },
  }
}
