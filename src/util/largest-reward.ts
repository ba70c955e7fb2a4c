/** Maximum size of rewards and penalties; squares of larger ones could overflow in statistics. */
export const largestReward = 1e100
