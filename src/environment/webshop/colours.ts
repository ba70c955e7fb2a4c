/**
 * Colour words by which WebShop compares options, in the order of `COLOR_SET` of web_agent_site/engine/normalize.py
 * (princeton-nlp/WebShop). The reward depends on these words.
 */
export const colours: readonly string[] = (
  "alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel camo caramel " +
  "champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry cream crystal dark denim " +
  "eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey heather indigo ivory ivy khaki " +
  "lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor mushroom mustard " +
  "natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal rust sand sapphire seashell silver " +
  "skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise violet walnut wheat white wine yellow"
).split(" ")

/** First colour that a text contains, also within a word (`titan` is `tan`); the text if there is none. */
export function normaliseColour(text: string): string {
  return colours.find((colour) => text.includes(colour)) ?? text
}
