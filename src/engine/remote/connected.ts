// What `RemoteEngine` uses once it connects.

export { downloadAdapter } from "./adapter-archive.ts"
export { findModel } from "./find-model.ts"
export { Models } from "./models.ts"
export { probe } from "./probe.ts"
export { Published } from "./published.ts"
export { readKept, remoteStore, saveThere } from "./remote-store.ts"
export { Samplers } from "./samplers.ts"
export { isOurs, openSession } from "./session.ts"
export { remoteSnapshots } from "./snapshots.ts"
export { stepOf, trainOn } from "./trainer.ts"
