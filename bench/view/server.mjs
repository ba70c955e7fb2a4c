// Server of the page in a process of its own: sends its address, and its memory when asked.
import { openView } from "../../modules/view/serve/view.js"

const view = await openView(process.argv.slice(2))
process.on("message", () => process.send({ rss: process.memoryUsage.rss() }))
process.send({ url: view.url })
