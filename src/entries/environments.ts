// `gigpo/environments`: the names of the built-in environments, and wrappers for any environment.

import "../check-node.mts"

export { type LookFirstOptions, lookFirst } from "../environment/look-first.ts"
export { type ParallelOptions, parallelCopies } from "../environment/parallel.ts"
export { type MessagePart, messageOf } from "../environment/picture.ts"
export { type PlanFirstOptions, planFirst } from "../environment/plan-first.ts"
export { environmentNames } from "../environment/registry.ts"
export { decodeImage } from "../images/decode.ts"
export type { EncodedImage, Raster } from "../images/image.ts"
export type { ImageLimits } from "../images/limits.ts"
export { encodePng } from "../images/png.ts"
