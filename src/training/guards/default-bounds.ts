// Defaults that the dashboard uses, too; it cannot load the table of options.

/** Minimum mean entropy of the sampled tokens, in nats. */
export const minEntropy = 0.01
