import { ranked } from "./ranked.ts"

// Entry of the layout worker. It is bundled separately and inserted into the page as packed text.
addEventListener("message", ({ data }) => postMessage(ranked(data)))
