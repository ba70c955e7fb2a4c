/** Whether a path has an extension of JavaScript or TypeScript. */
export function isModuleFile(path: string): boolean {
  return /\.[cm]?[jt]s$/.test(path)
}

/** Whether a name is the path of a module of the user: ./mine, ../mine/index.mjs, mine.ts. */
export function isModulePath(name: string): boolean {
  return /^\.{0,2}\//.test(name) || isModuleFile(name)
}
