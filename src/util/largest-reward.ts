/** Rewards and penalties beyond this size could overflow the squares of their statistics. */
export const largestReward = 1e100
