// Limits of one message of the Tinker API. Clients split batches at 1,024 data and 5,000,000 bytes. A message beyond these limits is
// rejected before anything is allocated for it.

/** Maximum bytes of a decompressed message. */
export const mostBytes = 16 * 2 ** 20
/** Maximum data of one call. */
export const mostData = 4096
/** Maximum tokens of all data of one call. */
export const mostTokens = 2 ** 20
/** Maximum chunks of one datum or prompt. */
export const mostChunks = 4096
/** Maximum loss inputs of one datum. */
export const mostInputs = 16
/** Maximum settings of a loss. */
export const mostSettings = 64
/** Maximum samples of one request. */
export const mostSamples = 4096
/** Maximum stop tokens of a request. */
export const mostStops = 64
/** Maximum metrics of a result. */
export const mostMetrics = 1024
/** Maximum dimensions of a tensor. */
export const mostDimensions = 8
