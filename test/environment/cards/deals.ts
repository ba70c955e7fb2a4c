/**
 * What the worlds deal for some seeds. Made with CPython 3.11's `random` (number line, EZPoints, Points24) and numpy 2.4's
 * PCG64 (Blackjack), by their rules: start and target; cards; cards; the dealer's open card, the player's hand after
 * hitting below 17, and whether it then wins (1), draws (0) or loses (-1).
 */
export const deals: readonly [number, [number, number], string, string, string, string, number][] = [
  [0, [3, 4], "4 8", "7 K 7 A", "Q", "A A Q Q", -1],
  [1, [1, 4], "4 3", "3 10 K K", "7", "2 J 6", 1],
  [2, [0, 1], "2 6", "A 2 2 6", "J", "J 5 K", -1],
  [3, [1, 4], "5 7", "4 10 9 3", "J", "Q A", 1],
  [4, [1, 2], "5 7", "4 5 2 Q", "K", "J 6 9", -1],
  [5, [4, 2], "J 2", "10 5 Q 6", "9", "7 9 A", -1],
  [6, [4, 0], "J 2", "K 10 2 8", "6", "Q 5 3", -1],
  [7, [2, 1], "7 5", "6 3 7 J", "K", "J 4 A K", -1],
  [42, [5, 0], "Q 2", "J 2 A Q", "2", "6 2 2 K", -1],
  [1000, [3, 5], "4 8", "K 7 J K", "3", "7 3 4 7", 1],
  [65534, [2, 4], "6 6", "5 10 9 6", "4", "K A", 1],
  [65536, [3, 5], "4 8", "7 Q K J", "A", "2 Q 5", 0],
  [65537, [3, 4], "4 8", "7 10 2 K", "6", "4 K Q", -1],
  [2147483648, [2, 3], "7 5", "6 7 9 3", "2", "J 2 K", -1],
  [4294967294, [0, 4], "4 3", "2 9 J 9", "4", "Q 6 6", -1],
]
