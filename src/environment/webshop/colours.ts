/**
 * The colour words by which WebShop compares options, in its order: `COLOR_SET` of web_agent_site/engine/normalize.py
 * (princeton-nlp/WebShop). A reward is only the same with the same words.
 */
export const colours: readonly string[] = (
  "alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel camo caramel " +
  "champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry cream crystal dark denim " +
  "eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey heather indigo ivory ivy khaki " +
  "lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor mushroom mustard " +
  "natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal rust sand sapphire seashell silver " +
  "skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise violet walnut wheat white wine yellow"
).split(" ")

/** The first colour that the text contains, also within a word (`titan` is `tan`); the text itself where there is none. */
export function normaliseColour(text: string): string {
  return colours.find((colour) => text.includes(colour)) ?? text
}
