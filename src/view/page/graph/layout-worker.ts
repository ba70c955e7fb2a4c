import { ranked } from "./ranked.ts"

// The whole of a worker: bundled by itself, and held by the page as text.
addEventListener("message", ({ data }) => postMessage(ranked(data)))
