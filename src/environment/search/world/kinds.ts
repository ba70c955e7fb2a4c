/** Kind of entity of the embedded world. */
export type Kind = "person" | "town" | "river" | "firm" | "dish"

export interface Relation {
  /** Kind of entity that is the value of the fact, or the words that the value is drawn from. */
  readonly to: Kind | readonly string[]
  /** Question for the fact; `{}` stands for the entity. */
  readonly question: string
  /** Noun phrase for the value of the fact, e.g. "the mayor of {}", for questions of two hops. */
  readonly phrase?: string
}

export interface KindOfEntity {
  /** Second words of the names. Empty for people, whose family names are the first words of other names. */
  readonly endings: readonly string[]
  /** Text of the passage of an entity, with `{name}` and the relations in braces. */
  readonly passage: string
  readonly relations: Readonly<Record<string, Relation>>
}

const words = (text: string) => text.split(" ")
const years = Array.from({ length: 40 }, (_, i) => String(1700 + 5 * i))
const numbers = words("ten twenty thirty forty fifty sixty seventy eighty ninety")

export const kinds: Readonly<Record<Kind, KindOfEntity>> = {
  person: {
    endings: [],
    passage:
      "{name} is a {job} who was born in {birthplace}. Today {name} works for {employer} and spends the evenings playing the {instrument}.",
    relations: {
      job: {
        to: words("baker carpenter clerk doctor gardener lawyer mason miner painter sailor tailor teacher"),
        question: "What is the job of {}?",
      },
      birthplace: { to: "town", question: "Where was {} born?", phrase: "the town where {} was born" },
      employer: { to: "firm", question: "Which firm does {} work for?", phrase: "the firm that {} works for" },
      instrument: {
        to: words("cello drum fiddle flute guitar harp horn lute organ piano trumpet viola"),
        question: "Which instrument does {} play?",
      },
    },
  },
  town: {
    endings: words("Bay Cross Ford Gate Hill Market Moor Square"),
    passage:
      "{name} lies on the {river}. The mayor of {name} is {mayor}, and many visitors come to {name} for its {dish}.",
    relations: {
      river: { to: "river", question: "On which river does {} lie?", phrase: "the river on which {} lies" },
      mayor: { to: "person", question: "Who is the mayor of {}?", phrase: "the mayor of {}" },
      dish: { to: "dish", question: "Which dish is {} known for?", phrase: "the dish that {} is known for" },
    },
  },
  river: {
    endings: words("Beck Brook Burn Creek Flow Rill Run Stream"),
    passage:
      "The {name} rises near {source}. The water of the {name} is {colour}, and the oldest bridge over the {name} was built in {bridge}.",
    relations: {
      source: { to: "town", question: "Near which town does the {} rise?", phrase: "the town near which the {} rises" },
      colour: {
        to: words("amber black blue brown clear green grey red silver white yellow"),
        question: "What colour is the water of the {}?",
      },
      bridge: { to: years, question: "When was the oldest bridge over the {} built?" },
    },
  },
  firm: {
    endings: words("Brothers Company Forge Looms Mills Press Union Yard"),
    passage:
      "{name} was founded by {founder} in {year}. The workshops of {name} stand in {seat}, where {workers} people make {product}.",
    relations: {
      founder: { to: "person", question: "Who founded {}?", phrase: "the founder of {}" },
      year: { to: years, question: "When was {} founded?" },
      seat: {
        to: "town",
        question: "In which town does {} have its workshops?",
        phrase: "the town with the workshops of {}",
      },
      workers: { to: numbers, question: "How many people make things for {}?" },
      product: {
        to: words("boats bricks candles clocks glass hats knives lamps paper ropes shoes soap"),
        question: "What is made by {}?",
      },
    },
  },
  dish: {
    endings: words("Bread Broth Cake Pie Pudding Salad Soup Stew"),
    passage:
      "{name} was first cooked by {inventor} in {origin}. It is made with {ingredient}, and most people eat {name} in {season}.",
    relations: {
      inventor: { to: "person", question: "Who first cooked {}?", phrase: "the inventor of {}" },
      origin: { to: "town", question: "Where was {} first cooked?", phrase: "the town where {} was first cooked" },
      ingredient: {
        to: words("apples barley beans cheese fish honey lentils mushrooms onions pears plums walnuts"),
        question: "What is {} made with?",
      },
      season: { to: words("spring summer autumn winter"), question: "In which season do most people eat {}?" },
    },
  },
}

export const kindNames = Object.keys(kinds) as Kind[]
