/** Whether it names a file of JavaScript or TypeScript. */
export function isModuleFile(path: string): boolean {
  return /\.[cm]?[jt]s$/.test(path)
}

/** Whether a name is the path of a module of somebody's own: ./mine, ../mine/index.mjs, mine.ts. */
export function isModulePath(name: string): boolean {
  return /^\.{0,2}\//.test(name) || isModuleFile(name)
}
