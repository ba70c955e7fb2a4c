import { expect, it } from "vitest"
import { tokenSetRatio } from "../../../src/environment/webshop/token-set-ratio.ts"

// Scores by rapidfuzz 3.14.6 after its default_process of the ASCII characters, rounded by Python.
it.each([
  ["essential oil", "essential oils", 96],
  ["tea tree", "tree tea", 100],
  ["soft", "quiet", 22],
  ["", "", 0],
  ["soft", "", 0],
  ["é", "é", 0],
  ["blue", "color navy blue", 100],
  ["easy clean", "easy to clean", 100],
  ["machine wash", "machine washable", 86],
  ["non slip", "anti slip", 71],
  ["café table", "caf table", 100],
  ["under_score", "under score", 100],
  ["X-Large", "large x", 100],
  ["water proof", "waterproof", 48],
  ["dry hair", "hair dryer", 89],
  ["a b c", "a b d", 80],
  ["gluten free", "sugar free", 57],
  ["power cord", "power cords 2", 87],
  ["x-large titan", "café", 12],
  ["lamps small", "of it's small", 62],
])("%j and %j are alike by %d", (left, right, score) => {
  expect(tokenSetRatio(left, right)).toBe(score)
  expect(tokenSetRatio(right, left)).toBe(score)
})
