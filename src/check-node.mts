// Rejects a Node that is too old, before what such a Node cannot load: the library and the command line import this first. Only syntax and
// functions of Node 14. What modules of Node 18 or 16 do not have is not imported by its name, as those would stop at it before this file
// runs: zlib.crc32, buffer.isUtf8, fs.statfs.

/** The `engines` of package.json. */
const [leastMajor, leastMinor] = [20, 19]
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
if (major < leastMajor || (major === leastMajor && minor < leastMinor))
  throw new Error(
    `gigpo needs Node ${leastMajor}.${leastMinor} or later, and this is Node ${process.version}: install a newer one (https://nodejs.org).`,
  )

export {}
