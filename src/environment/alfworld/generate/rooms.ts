import type { TaskType } from "./task-types.ts"

export type RoomKind = "kitchen" | "bedroom" | "living room" | "bathroom"

/** Contents of a kind of room. */
export interface RoomTemplate {
  /** Receptacles of every such room, sufficient for each of its tasks. */
  readonly always: readonly string[]
  /** Further receptacles: relative probability of the kind, and maximum number in a room. */
  readonly further: readonly (readonly [kind: string, weight: number, most: number])[]
  /** Kinds of objects. */
  readonly objects: readonly string[]
  readonly taskTypes: readonly TaskType[]
}

const words = (text: string) => text.split(" ")

// biome-ignore format: several receptacles per line
export const rooms: Readonly<Record<RoomKind, RoomTemplate>> = {
  kitchen: {
    always: words("CounterTop Fridge Microwave SinkBasin"),
    further: [
      ["Cabinet", 6, 27], ["Drawer", 4, 27], ["CounterTop", 2, 4], ["StoveBurner", 2, 6], ["Shelf", 1.5, 6],
      ["CoffeeMachine", 1, 1], ["DiningTable", 1, 3], ["GarbageCan", 1, 1], ["Toaster", 1, 1], ["SideTable", 0.5, 1],
    ],
    objects: words(
      "Apple Bread Egg Lettuce Potato Tomato WineBottle Glassbottle Bowl Cup Mug Plate Pan Pot Kettle Fork Spoon Knife " +
        "ButterKnife Ladle Spatula SaltShaker PepperShaker DishSponge SoapBottle PaperTowelRoll Vase Statue",
    ),
    taskTypes: [
      "pick_and_place_simple", "pick_clean_then_place_in_recep", "pick_heat_then_place_in_recep",
      "pick_cool_then_place_in_recep", "pick_two_obj_and_place",
    ],
  },
  bedroom: {
    always: words("Bed Desk"),
    further: [
      ["Drawer", 6, 17], ["Shelf", 4, 12], ["SideTable", 2, 2], ["Cabinet", 1.5, 6], ["Dresser", 1, 2], ["Desk", 0.5, 2],
      ["GarbageCan", 1, 1], ["Safe", 1, 1], ["ArmChair", 1, 2], ["LaundryHamper", 0.7, 1], ["DiningTable", 0.3, 1],
    ],
    objects: words(
      "AlarmClock BaseballBat BasketBall Book Bowl Box CD CellPhone CreditCard DeskLamp KeyChain Laptop Mug Pen Pencil " +
        "Pillow TeddyBear TennisRacket",
    ),
    taskTypes: ["pick_and_place_simple", "look_at_obj_in_light", "pick_two_obj_and_place"],
  },
  "living room": {
    always: words("Sofa SideTable"),
    further: [
      ["Drawer", 5, 21], ["Shelf", 4, 14], ["Cabinet", 2, 8], ["SideTable", 2, 5], ["CoffeeTable", 1, 2],
      ["ArmChair", 1, 2], ["DiningTable", 1, 2], ["Dresser", 1, 2], ["TVStand", 1, 2], ["GarbageCan", 1, 1],
      ["Ottoman", 0.5, 1], ["Safe", 0.5, 1], ["Sofa", 0.3, 2],
    ],
    objects: words(
      "Book Boots Box Candle CellPhone CreditCard DeskLamp KeyChain Laptop Newspaper Pen Pencil Pillow Plate RemoteControl " +
        "Statue TissueBox Vase Watch WateringCan",
    ),
    taskTypes: ["pick_and_place_simple", "look_at_obj_in_light", "pick_two_obj_and_place"],
  },
  bathroom: {
    always: words("CounterTop SinkBasin Toilet"),
    further: [
      ["Cabinet", 5, 12], ["Drawer", 4, 12], ["Shelf", 2, 6], ["HandTowelHolder", 1, 4], ["TowelHolder", 1, 2],
      ["GarbageCan", 1, 1], ["ToiletPaperHanger", 1, 1], ["BathtubBasin", 1, 1], ["SinkBasin", 0.7, 2], ["Cart", 0.5, 1],
      ["CounterTop", 0.5, 2], ["SideTable", 0.3, 1],
    ],
    objects: words(
      "Candle Cloth DishSponge HandTowel PaperTowelRoll Plunger ScrubBrush SoapBar SoapBottle SprayBottle TissueBox " +
        "ToiletPaper Towel",
    ),
    taskTypes: ["pick_and_place_simple", "pick_clean_then_place_in_recep", "pick_two_obj_and_place"],
  },
}
