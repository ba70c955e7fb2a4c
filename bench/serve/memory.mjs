// Told to the server's process before it starts: says, when it is asked, what memory it holds after a collection.
process.on("message", () => {
  globalThis.gc()
  const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage()
  process.send({ rss, heapUsed, external, arrayBuffers })
})
process.channel.unref()
