// What one message of the Tinker API may hold. Clients of the API cut batches at 1,024 data and 5,000,000 bytes; a message beyond these
// limits is refused before anything is allocated for it.

/** Bytes of a message, once it is decompressed. */
export const mostBytes = 16 * 2 ** 20
/** Data of one call. */
export const mostData = 4096
/** Tokens of all data of one call. */
export const mostTokens = 2 ** 20
/** Chunks of one datum or prompt. */
export const mostChunks = 4096
/** Inputs of the loss in one datum. */
export const mostInputs = 16
/** Settings of a loss. */
export const mostSettings = 64
/** Samples of one request. */
export const mostSamples = 4096
/** Token ids that end a sample. */
export const mostStops = 64
/** Metrics of a result. */
export const mostMetrics = 1024
/** Dimensions of a tensor. */
export const mostDimensions = 8
