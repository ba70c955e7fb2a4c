import { describe, expect, it } from "vitest"
import { blackjack } from "../../src/environment/cards/blackjack.ts"
import { drawBlackjack, drawFormula, drawNumberLine } from "../../src/environment/cards/draw.ts"
import { ezPoints } from "../../src/environment/cards/ez-points.ts"
import { numberLine } from "../../src/environment/cards/number-line.ts"
import type { CardOptions, CardTask } from "../../src/environment/cards/options.ts"
import { points24 } from "../../src/environment/cards/points24.ts"
import { checkMessages, checkObservation, playing } from "../../src/environment/contract.ts"
import type { Environment, Observation } from "../../src/environment/environment.ts"
import { lookFirst } from "../../src/environment/look-first.ts"
import { parallelCopies } from "../../src/environment/parallel.ts"
import { imagePlace, messageOf } from "../../src/environment/picture.ts"
import { planFirst } from "../../src/environment/plan-first.ts"
import { drawRoom } from "../../src/environment/sokoban/draw.ts"
import { Cell, parseRoom } from "../../src/environment/sokoban/room.ts"
import { sokoban } from "../../src/environment/sokoban/sokoban.ts"
import { decodeImage } from "../../src/images/decode.ts"
import type { Raster } from "../../src/images/image.ts"
import { encodePng } from "../../src/images/png.ts"
import { checkEnvironment } from "../../src/rollout/check-environment.ts"
import { withPast } from "../../src/rollout/remember.ts"
import { Random } from "../../src/util/random.ts"
import { play, playExpert, start } from "./cards/play.ts"

const text = "#######\n#P_X_O#\n#__√__#\n#######"
const context = () => ({ signal: new AbortController().signal, random: new Random(1) })
const pixel = ({ data, width }: Raster, x: number, y: number) => [
  ...data.subarray(3 * (y * width + x), 3 * (y * width + x) + 3),
]
const same = (a: Raster, b: Raster) => Buffer.from(a.data).equals(b.data)

describe("picture of a room", () => {
  it("has gym-sokoban's colours at the cells", () => {
    const raster = drawRoom(parseRoom(`${"#".repeat(60)}\n#P_X_O√${"_".repeat(52)}#\n${"#".repeat(60)}`))
    // 60 × 3 cells of 16 pixels are fewer than 65,536 pixels, so the picture is scaled up.
    expect([raster.width, raster.height]).toEqual([1144, 57])
    const side = raster.width / 60
    const at = (column: number) => pixel(raster, Math.floor((column + 0.5) * side), Math.floor(1.5 * side))
    expect(at(30)).toEqual([243, 248, 238])
    expect(at(5)).toEqual([254, 126, 125])
    const near = (found: number[], colour: number[]) => found.every((value, c) => Math.abs(value - colour[c]!) < 60)
    expect(near(at(1), [160, 212, 56])).toBe(true)
    expect(near(pixel(raster, Math.floor(3.68 * side), Math.floor(1.35 * side)), [142, 121, 56])).toBe(true)
    expect(near(pixel(raster, Math.floor(6.68 * side), Math.floor(1.35 * side)), [254, 95, 56])).toBe(true)
    expect(pixel(raster, Math.floor(10.45 * side), Math.floor(0.1 * side))).toEqual([0, 0, 0])
  })

  it("is scaled up to 256 × 256 pixels for 6 × 6 cells, and not beyond 16 pixels a cell for large rooms", () => {
    const room = (side: number) => {
      const cells = new Uint8Array(side * side).fill(Cell.floor)
      return drawRoom({ height: side, width: side, cells })
    }
    expect([6, 16, 50].map((side) => room(side).width)).toEqual([256, 256, 800])
  })

  it("differs wherever the state differs, for each kind of cell", () => {
    const kinds = Object.values(Cell).map((cell) => drawRoom({ height: 1, width: 1, cells: Uint8Array.of(cell) }))
    for (const [i, one] of kinds.entries()) for (const other of kinds.slice(i + 1)) expect(same(one, other)).toBe(false)
  })
})

describe("sokoban with pictures", () => {
  const task = { seed: 0, room: text }

  it.each(["image", "both"] as const)(
    "%s: keeps the contract, and each picture is that of the state",
    async (observation) => {
      const environment = sokoban({ observation })
      await checkEnvironment(environment)
      const episode = await environment.start(task, context())
      const seen: Observation[] = [episode.first]
      for (const action of ["right", "right", "still"]) seen.push((await episode.step(action)).observation)
      for (const { text, anchor, images } of seen) {
        expect(anchor).toBe(text)
        expect(images).toHaveLength(1)
        expect(same(await decodeImage(images![0]!.bytes), drawRoom(parseRoom(text)))).toBe(true)
      }
    },
  )

  it("prompts show the text, the picture or both", async () => {
    const messageIn = async (observation: "text" | "image" | "both") => {
      const environment = sokoban({ observation })
      const { first } = await environment.start(task, context())
      const past = { observation: first, completion: "", action: "up" }
      return environment.prompt(task, [past], first)[0]!
    }
    const shown = "# P _ X _ O #"
    const [written, image, both] = [await messageIn("text"), await messageIn("image"), await messageIn("both")]
    expect(written.images).toBeUndefined()
    expect(written.content.split(shown)).toHaveLength(3)
    expect(image.content).toContain(`Step 2, now:\n${imagePlace}\n\nFirst think`)
    expect(image.content).not.toContain(shown)
    expect(image.images).toHaveLength(1)
    expect(both.content).toContain(`Step 2, now:\n${imagePlace}\n# # #`)
    expect(both.content.split(shown)).toHaveLength(3)
  })

  it("the shortest prompt is the picture alone", async () => {
    const environment = sokoban({ observation: "image", rules: false })
    const { first } = await environment.start(task, context())
    expect(environment.prompt(task, [], first)).toEqual([{ role: "user", content: imagePlace, images: first.images }])
  })
})

describe("pictures of the card environments", () => {
  const open: Readonly<Record<string, (options: CardOptions) => Environment<CardTask>>> = {
    ...{ "number-line": numberLine, "ez-points": ezPoints, points24, blackjack },
  }

  it.each(Object.keys(open))("%s: keeps the contract with pictures, and plays as with texts", async (name) => {
    const [text, image] = [open[name]!({ observation: "text" }), open[name]!({ observation: "image" })]
    await checkEnvironment(image)
    for (const seed of [1, 2, 3]) {
      const [texts, images] = [await playExpert(text, seed), await playExpert(image, seed)]
      const plain = images.map(({ observation: { images: _, ...rest }, ...result }) => ({
        ...result,
        observation: rest,
      }))
      expect(plain).toEqual(texts)
      for (const { observation } of images) {
        const { width, height } = await decodeImage(observation.images![0]!.bytes)
        expect([width, height]).toEqual([300, 300])
      }
    }
  })

  it("equal texts have equal pictures, and different ones different pictures", async () => {
    const pictures = new Map<string, Buffer>()
    for (let seed = 0; seed < 60; seed++) {
      const { first } = await start(numberLine({ observation: "image" }), seed)
      const bytes = Buffer.from(first.images![0]!.bytes)
      expect(bytes.equals(pictures.get(first.text) ?? bytes)).toBe(true)
      pictures.set(first.text, bytes)
    }
    expect(pictures.size).toBeGreaterThan(15)
    expect(new Set([...pictures.values()].map((bytes) => bytes.toString("base64"))).size).toBe(pictures.size)
  })

  it("the picture of a formula changes with each element, and the prompt writes the formula too", async () => {
    const environment = ezPoints({ observation: "image" })
    const { first } = await start(environment, 5)
    const number = /Cards: (\S+)/.exec(first.text)![1]!.replace(/[JQK]/, "10").replace("A", "1")
    const results = await play(environment, 5, [number, "+", "*"])
    const files = [first, ...results.map(({ observation }) => observation)].map(({ images }) =>
      Buffer.from(images![0]!.bytes).toString("base64"),
    )
    expect(new Set(files).size).toBe(4)
    const { content } = environment.prompt({ seed: 5 }, [], results[1]!.observation)[0]!
    expect(content).toContain(`Step 1, now:\n${imagePlace}\nFormula: ${number}+`)
    expect(content).not.toContain("Cards:")
  })

  it("every card of a hand can be seen, however many there are", () => {
    const cards = Array.from({ length: 21 }, () => ({ rank: "A", suit: "H" as const }))
    for (const count of [1, 4, 5, 8, 9, 13, 20]) {
      const hand = cards.slice(0, count)
      const before = drawBlackjack(cards[0]!, hand)
      expect(same(before, drawBlackjack(cards[0]!, cards.slice(0, count + 1)))).toBe(false)
      for (let at = 0; at < count; at++)
        expect(same(before, drawBlackjack(cards[0]!, hand.with(at, { rank: "2", suit: "H" })))).toBe(false)
    }
  })

  it("draws every number, rank and element", () => {
    for (const rank of ["A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"])
      expect(same(drawBlackjack({ rank, suit: "C" }, []), drawBlackjack({ rank, suit: "S" }, []))).toBe(false)
    const elements = [..."1234567890+-*/()="]
    const cards = [1, 2, 3, 4].map(() => ({ rank: "9", suit: "D" as const }))
    for (let count = 0; count < elements.length; count++)
      expect(same(drawFormula(cards, elements.slice(0, count)), drawFormula(cards, elements.slice(0, count + 1)))).toBe(
        false,
      )
    // The last of 21 elements is inside the picture.
    const long = Array<string>(20).fill("10")
    expect(same(drawFormula(cards, [...long, "+"]), drawFormula(cards, [...long, "-"]))).toBe(false)
    expect(same(drawNumberLine(1000, 1), drawNumberLine(1009, 1))).toBe(false)
  })
})

describe("images in messages", () => {
  const image = async () => await encodePng(drawNumberLine(1, 2))

  it("a text beside images cannot mark a place", async () => {
    const one = await image()
    const message = messageOf("user", [`a${imagePlace}b`, one, "c"])
    expect(message).toEqual({ role: "user", content: `a\ufffdb${imagePlace}c`, images: [one] })
    const [longer] = withPast([message], { past: imagePlace, observation: undefined })
    expect(longer!.content).toBe(`\ufffd\n\na\ufffdb${imagePlace}c`)
    expect(messageOf("user", [`a${imagePlace}b`])).toEqual({ role: "user", content: `a${imagePlace}b` })
  })

  it("a message must mark the place of each image, and images have a type and bytes", async () => {
    const contract = playing("game")
    const one = await image()
    const check = (content: string, images: unknown) => () =>
      checkMessages(contract, [{ role: "user", content, images } as never])
    expect(check("x", [one])).toThrow(/marks 0 places of images \(U\+FFFC\), but has 1 images/)
    expect(check(imagePlace, [])).toThrow(/marks 1 places/)
    expect(check(imagePlace, [{ ...one, mediaType: "image/gif" }])).toThrow(/image\/png or image\/jpeg/)
    expect(check(imagePlace, "x")).toThrow(/images must be a list/)
    expect(check(imagePlace, [one])()).toHaveLength(1)
    const observation = (images: unknown) => ({ text: "", anchor: "", images }) as never
    expect(() => checkObservation(contract, "start()", observation([5]))).toThrow(/observation.images must be a list/)
    expect(checkObservation(contract, "start()", observation([one]))).toBeTruthy()
  })

  it("wrappers keep the pictures", async () => {
    const environment = sokoban({ observation: "image" })
    const task = { seed: 0, room: text }
    for (const [wrapped, images] of [
      [lookFirst(environment, { steps: 1 }), 1],
      [planFirst(environment), 1],
      [parallelCopies(environment, { copies: 2 } as never), 2],
    ] as const) {
      const [wrappedTask] = wrapped.tasks("train", new Random(1)) as Iterable<never>
      const episode = await wrapped.start(wrappedTask!, context())
      const messages = wrapped.prompt(wrappedTask!, [], episode.first)
      checkMessages(playing("wrapped"), messages)
      expect(messages.flatMap((message) => message.images ?? [])).toHaveLength(images)
      await episode[Symbol.asyncDispose]?.()
    }
    const lost = { text, anchor: text }
    expect(() => environment.prompt(task, [], lost)).toThrow(/sokoban: the observation has lost its picture/)
  })
})
