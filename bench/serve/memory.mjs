// Preloaded into the server's process. Reports the memory after a garbage collection, at each message.
process.on("message", () => {
  globalThis.gc()
  const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage()
  process.send({ rss, heapUsed, external, arrayBuffers })
})
process.channel.unref()
