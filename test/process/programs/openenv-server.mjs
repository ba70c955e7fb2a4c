// An OpenEnv server whose process ends at its third step: by process.exit, or because it has no memory left. Prints its port.
import { createServer } from "node:http"
import { WebSocketServer } from "ws"

const [end] = process.argv.slice(2)
let steps = 0
const observation = (text, done) => ({ type: "observation", data: { observation: { text }, reward: 0, done } })
const ends = {
  exit: () => process.exit(3),
  memory() {
    for (const kept = []; ; ) kept.push(new Array(100_000).fill(0.5))
  },
}
const http = createServer((_, response) => {
  response.writeHead(404)
  response.end()
})
new WebSocketServer({ server: http, path: "/ws" }).on("connection", (socket) => {
  socket.on("message", (text) => {
    const { type } = JSON.parse(text.toString())
    if (type === "close") return
    if (type === "step" && ++steps === 3) ends[end]()
    socket.send(JSON.stringify(observation(type, type === "step")))
  })
})
http.listen(0, "127.0.0.1", () => process.stdout.write(`${http.address().port}\n`))
