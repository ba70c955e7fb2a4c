import { describe, expect, it } from "vitest"
import { analyse, stopWords } from "../../src/retrieval/analyse.ts"
import { porterStem } from "../../src/retrieval/porter.ts"

describe("porterStem", () => {
  // Worked by hand along Porter's paper, one or more for each rule.
  it.each(
    `caresses caress|ponies poni|ties ti|caress caress|cats cat|feed feed|agreed agre|plastered plaster|bled bled|motoring motor
    sing sing|conflated conflat|troubled troubl|sized size|hopping hop|tanned tan|falling fall|hissing hiss|fizzed fizz
    failing fail|filing file|happy happi|sky sky|relational relat|conditional condit|rational ration|valenci valenc
    digitizer digit|conformabli conform|radicalli radic|differentli differ|vileli vile|analogousli analog
    vietnamization vietnam|predication predic|operator oper|feudalism feudal|decisiveness decis|hopefulness hope
    callousness callous|formaliti formal|sensitiviti sensit|sensibiliti sensibl|triplicate triplic|formative form
    formalize formal|electriciti electr|electrical electr|hopeful hope|goodness good|revival reviv|allowance allow
    inference infer|airliner airlin|gyroscopic gyroscop|adjustable adjust|defensible defens|irritant irrit
    replacement replac|adjustment adjust|dependent depend|adoption adopt|homologou homolog|communism commun|activate activ
    angulariti angular|homologous homolog|effective effect|bowdlerize bowdler|probate probat|rate rate|cease ceas
    controll control|roll roll|as as|is is|archaeology archaeolog|possibly possibl|yes ye|saying sai|enjoy enjoi`
      .split(/[|\n]/)
      .map((pair) => pair.trim().split(" ") as [string, string]),
  )("%s becomes %s", (word, stem) => {
    expect(porterStem(word)).toBe(stem)
  })

  it("leaves numbers and other scripts alone", () => {
    expect(["2023", "été", "日", "a1b2"].map(porterStem)).toEqual(["2023", "été", "日", "a1b2"])
  })
})

describe("analyse", () => {
  it("takes away a final 's of any apostrophe before it stems", () => {
    expect(analyse("Anna's DOG'S cat’s bird＇s it's James'")).toEqual(["anna", "dog", "cat", "bird", "jame"])
  })

  it("leaves out the 33 stop words in any case, and no other", () => {
    expect(stopWords.size).toBe(33)
    expect(analyse("The cat AND the hat were with you")).toEqual(["cat", "hat", "were", "you"])
    expect(analyse("a an the of")).toEqual([])
  })

  it("lowers case by code points, as Lucene does", () => {
    expect(analyse("ÀÉ ΟΔΟΣ İZMİR Straße")).toEqual(["àé", "οδοσ", "izmir", "straße"])
  })
})
