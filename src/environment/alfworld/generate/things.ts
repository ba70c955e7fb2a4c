/** Kind of object. */
export interface ObjectKind {
  /** Name of ALFWorld's type without the suffix `Type`. */
  readonly name: string
  /** Kinds of receptacles that can hold the object, the most likely one first. */
  readonly where: readonly string[]
  readonly can: ReadonlySet<Ability>
}

export type Ability = "clean" | "heat" | "cool" | "slice" | "toggle" | "contain"

/** Receptacles that can be opened. They are closed at the start. */
export const openable: ReadonlySet<string> = new Set(["Cabinet", "Drawer", "Fridge", "Microwave", "Safe"])

/** Kinds of objects with their abilities and their receptacles. */
const table: readonly (readonly [name: string, can: string, where: string])[] = [
  ["Apple", "clean heat cool slice", "CounterTop Fridge DiningTable SinkBasin GarbageCan Microwave SideTable"],
  ["Bread", "heat cool slice", "CounterTop DiningTable Fridge SideTable Microwave GarbageCan"],
  ["Egg", "clean heat cool slice", "Fridge CounterTop SinkBasin GarbageCan Microwave DiningTable"],
  ["Lettuce", "clean cool slice", "Fridge CounterTop DiningTable SinkBasin GarbageCan SideTable"],
  ["Potato", "clean heat cool slice", "Fridge CounterTop SinkBasin Microwave DiningTable GarbageCan SideTable"],
  ["Tomato", "clean heat cool slice", "CounterTop Fridge SinkBasin DiningTable GarbageCan Microwave SideTable"],
  ["WineBottle", "cool", "CounterTop DiningTable Cabinet GarbageCan Shelf Fridge SideTable"],
  ["Glassbottle", "", "CounterTop SinkBasin GarbageCan Shelf Cabinet DiningTable Fridge"],

  [
    "Bowl",
    "clean cool contain",
    "Fridge CounterTop Desk DiningTable Shelf Cabinet SinkBasin Microwave CoffeeTable SideTable Dresser TVStand",
  ],
  ["Cup", "clean heat cool contain", "Fridge CounterTop SinkBasin Microwave DiningTable Shelf Cabinet SideTable"],
  [
    "Mug",
    "clean heat cool contain",
    "CoffeeMachine CounterTop Fridge Desk Microwave SinkBasin DiningTable Shelf Cabinet SideTable Dresser CoffeeTable",
  ],
  [
    "Plate",
    "clean heat cool contain",
    "CounterTop Fridge DiningTable Shelf Cabinet SinkBasin Microwave CoffeeTable SideTable TVStand",
  ],
  ["Pan", "clean cool contain", "StoveBurner CounterTop Fridge DiningTable SinkBasin Cabinet"],
  ["Pot", "clean cool contain", "StoveBurner CounterTop Fridge DiningTable SinkBasin Shelf Cabinet"],
  ["Kettle", "clean", "StoveBurner CounterTop DiningTable SinkBasin Shelf Cabinet"],
  ["Fork", "clean", "CounterTop DiningTable SinkBasin Drawer SideTable"],
  ["Spoon", "clean", "CounterTop SinkBasin DiningTable Drawer SideTable"],
  ["Knife", "clean", "CounterTop DiningTable SinkBasin Drawer SideTable"],
  ["ButterKnife", "clean", "CounterTop DiningTable SinkBasin Drawer SideTable"],
  ["Ladle", "clean", "CounterTop DiningTable SinkBasin Drawer Cabinet"],
  ["Spatula", "clean", "CounterTop SinkBasin DiningTable Drawer StoveBurner SideTable"],
  ["SaltShaker", "", "CounterTop DiningTable Shelf Drawer Cabinet SideTable"],
  ["PepperShaker", "", "CounterTop DiningTable Shelf Drawer Cabinet SideTable"],
  ["DishSponge", "clean", "CounterTop SinkBasin DiningTable GarbageCan Shelf Drawer Cabinet BathtubBasin Toilet Cart"],
  ["PaperTowelRoll", "", "CounterTop GarbageCan DiningTable Shelf Toilet SideTable"],

  ["SoapBottle", "", "CounterTop GarbageCan Toilet DiningTable Shelf Cabinet Drawer Cart SideTable"],
  ["SoapBar", "clean", "CounterTop Toilet SinkBasin BathtubBasin GarbageCan Shelf Cabinet Drawer Cart"],
  ["SprayBottle", "", "CounterTop Toilet GarbageCan Cart Shelf Cabinet Dresser SideTable DiningTable"],
  ["Candle", "", "CounterTop Toilet SideTable CoffeeTable Shelf Cabinet Drawer Dresser DiningTable Cart"],
  ["Cloth", "clean", "BathtubBasin CounterTop SinkBasin Toilet Shelf Cabinet Drawer Cart"],
  ["HandTowel", "", "HandTowelHolder CounterTop Cabinet SinkBasin"],
  ["Towel", "", "TowelHolder BathtubBasin CounterTop"],
  ["ToiletPaper", "", "ToiletPaperHanger Toilet CounterTop GarbageCan Shelf Cabinet Drawer Cart SideTable"],
  ["Plunger", "", "CounterTop Cabinet"],
  ["ScrubBrush", "", "CounterTop Cabinet"],
  [
    "TissueBox",
    "",
    "SideTable CounterTop DiningTable CoffeeTable Desk Dresser Toilet Shelf Cabinet Drawer Cart TVStand",
  ],

  ["AlarmClock", "", "Desk SideTable Dresser Shelf DiningTable"],
  ["Book", "", "Bed Desk DiningTable CoffeeTable Sofa Dresser SideTable CounterTop ArmChair Shelf Drawer Cabinet"],
  ["CD", "", "Desk GarbageCan Dresser SideTable Safe Shelf Drawer DiningTable ArmChair"],
  ["CellPhone", "", "Bed CounterTop Desk Dresser ArmChair SideTable Sofa Safe CoffeeTable DiningTable Shelf Drawer"],
  [
    "CreditCard",
    "",
    "Desk CounterTop SideTable CoffeeTable Dresser ArmChair Sofa DiningTable Ottoman TVStand Safe Shelf Drawer",
  ],
  ["KeyChain", "", "Desk SideTable Safe Dresser ArmChair Sofa DiningTable CoffeeTable Ottoman TVStand Shelf Drawer"],
  ["Laptop", "", "Bed Desk Sofa DiningTable CoffeeTable ArmChair Dresser Ottoman SideTable TVStand"],
  ["Newspaper", "", "Sofa CoffeeTable Dresser DiningTable ArmChair SideTable Ottoman Shelf Cabinet Drawer"],
  ["Pen", "", "Desk DiningTable SideTable Dresser CoffeeTable GarbageCan CounterTop Shelf Drawer TVStand"],
  ["Pencil", "", "Desk SideTable Dresser DiningTable CoffeeTable GarbageCan CounterTop Shelf Drawer"],
  ["Pillow", "", "Bed Sofa ArmChair Ottoman"],
  ["RemoteControl", "", "Sofa CoffeeTable Dresser ArmChair TVStand SideTable Ottoman DiningTable Desk Shelf Drawer"],
  ["Statue", "", "CoffeeTable SideTable DiningTable TVStand Dresser CounterTop Safe Shelf Desk"],
  ["TeddyBear", "", "Bed Sofa ArmChair"],
  ["Vase", "", "CounterTop Shelf CoffeeTable DiningTable TVStand Dresser SideTable Safe Cabinet Desk"],
  ["Watch", "", "CoffeeTable SideTable Dresser DiningTable Safe TVStand Shelf Drawer"],
  ["Box", "", "Sofa CoffeeTable DiningTable Dresser ArmChair Desk SideTable Shelf Cabinet TVStand"],
  ["Boots", "", "Bed ArmChair"],
  ["BaseballBat", "", "Bed Desk"],
  ["BasketBall", "", "Bed Desk Dresser"],
  ["TennisRacket", "", "Bed Desk Dresser"],
  ["WateringCan", "", "CoffeeTable SideTable"],
  ["DeskLamp", "toggle", "Desk SideTable Dresser Shelf CoffeeTable"],
]

export const objectKinds: ReadonlyMap<string, ObjectKind> = new Map(
  table.map(([name, can, where]) => [
    name,
    { name, where: where.split(" "), can: new Set(can.split(" ").filter(Boolean) as Ability[]) },
  ]),
)

/** Unnormalized probability of an object in a kind of receptacle, by the rank of the kind among the object's receptacles. */
export function likelihood(rank: number): number {
  return 1 / (rank + 2)
}

/** Whether a receptacle of one kind can hold an object of another. */
export function fits(object: string, receptacle: string): boolean {
  return objectKinds.get(object)?.where.includes(receptacle) ?? false
}
