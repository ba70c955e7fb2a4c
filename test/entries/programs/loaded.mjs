// Prints the URLs of all modules that running one file loads, as one line of JSON; the file is given the arguments after it.
import { register } from "node:module"
import { MessageChannel } from "node:worker_threads"

const hooks = `
let port
export function initialize(to) {
  port = to
}
export function load(url, context, next) {
  port.postMessage(url)
  return next(url, context)
}`
const { port1, port2 } = new MessageChannel()
const loaded = []
let done = () => {}
port1.on("message", (url) => {
  loaded.push(url)
  if (url.endsWith("#end")) done()
})
const options = { data: port2, transferList: [port2] }
register(`data:text/javascript,${encodeURIComponent(hooks)}`, import.meta.url, options)
process.argv.splice(1, 1)
await import(process.argv[1])
// Messages keep their order: this one comes last.
const ended = new Promise((resolve) => {
  done = resolve
})
await import("data:text/javascript,#end")
await ended
console.log(JSON.stringify(loaded.slice(0, -1)))
process.exit()
