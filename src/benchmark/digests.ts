import type { KnownDigests } from "./definition.ts"

/**
 * Digests of the built-in benchmarks; a test computes them. Results before and after a changed digest cannot be compared. The benchmark then gets
 * a new version, and the old version is removed or kept with its own rules.
 */
export const knownDigests: Readonly<Record<string, KnownDigests>> = {
  "alfworld/seen@1": {
    tasks: "ff8ab1bcead62d047d829308bd41641f876d87c9d8ef7818f1b3eab96fe33691",
    environment: "fc89bdc4c0eeb9a4bee8ab01d30526e9af24856ee1bbca1d0c5bc14cec0e0ade",
    prompt: "89169e81055c1e3a15c23e4564ffd21e973af0535ceb73e63920cd7af0fe6a95",
  },
  "alfworld/unseen@1": {
    tasks: "64a6849d439c1082ea800a699f53b50434ae15bbfbcd7a5dc5bbb79a9ccc1251",
    environment: "a87c554dd4004141e11bd3671a10f131d62726ec5127420cf9a7b03dd69f94fa",
    prompt: "02c582d69077337f8290240586308794fdd69ad90c191ac4b0b00c987168f219",
  },
  "households/seen@1": {
    tasks: "08c84a9c5977c9dcaa0073b69e28632f28207fe2ea044ceae450f7e4c3cd2eac",
    environment: "4439214ae9459d238cebde335b352535c757c0c913293397518d91dca0f7ac59",
    prompt: "0a390f4de6211be160f4f59f35c5d4e22c67ab72e4fd81eaf63dddadb6be1037",
  },
  "households/unseen@1": {
    tasks: "832ed8af1011140e04893c8a45bdff01cbbc430009827b86aac7757ad979d941",
    environment: "6256aa6e0c586ba37f4bafb743e62af8318bdffecf35ccaad10024fff9469f12",
    prompt: "f6745907f78e17af2d09e9157e2b42ee90f9b94b3367cd0dd5cba5b09e1c85f1",
  },
  "households/small@1": {
    tasks: "d3fc0e9a0b4a16cf9d6f357d1c3435740e588d13098f79e5ba9d3307c9995786",
    environment: "06c016dc2694546bb0ab2d8ec29d33e1081f2e3358404c0b94d703a8a023ec0d",
    prompt: "012702d142ecf98728985470e255eb0f39f2047edfe867689c6d509e1820175a",
  },
  "webshop/test@1": {
    tasks: "5a76622c7d5b4461d13e0be18cf2f3981a39b096981b9331d5d0a88517bb9c4f",
    environment: "424ab2c37bfee3a4b4e7c493b8609f4967d881a5ff10205accb6e5f9a7884ec5",
    prompt: "e6046d73d43f1fcc570679aad7845fe5cf282bc3f4267e7def4caaa8356c80df",
  },
  "shop/test@1": {
    tasks: "f64248aae7ce23f16ac061f7645bb2d309f7ebc141441a43979e76f0acc96f1a",
    environment: "a80065c310d6fb1700f1bca92df29d2be57839cd602d33a98d2001851acc76b0",
    prompt: "3e142ae911bc5bab3996f4432168a016f6362b9aeb5e7aee76ce28337671c861",
  },
  "shop/short@1": {
    tasks: "03a370e4821c9e4150b979773a04bb86d43f363432f64c1b743f546f573aea32",
    environment: "47bf186d2bdc19ee08eec848344156f0f7dae1a1345cf155b65b8c510422fb29",
    prompt: "6e33efebea262c3ac4b16119d8a8ada25b7ab9d896a07d68e22fe50893dbe01c",
  },
  "search/world@1": {
    tasks: "9bc9672af45e61ff84bf472891525e6e2fa1dc67b219aa27f1c36924e01150f8",
    environment: "339ba13bb340b32def08607d1ca10325478c674d8a25d4cd6640f20840599d06",
    prompt: "b279c96e0aee3c588d8f596ce763de015f9fae824ff02ef306600a0395d7fb8e",
  },
  "search/worlds@1": {
    tasks: "b366e2b09388159b146f04f9bec909c6864b7b81e8c22ffa153922e5feed993f",
    environment: "7e4122bc4f9d3adcc70980d343298b530972fae555edd9888173d3fb980be730",
    prompt: "0c442f4581853abe37a7ac0ea9a4da06f913ab3deb1d65e99c8589a7b4a118c6",
  },
  "sokoban/6x6@1": {
    tasks: "ab8e378f5baa9653ebd6edc4904eb14c9cf08292fd104a5f1de5e42739f82c23",
    environment: "0c7ec3d33cd8719538604154f4109ceea655ab8eccc27802d5569bdb6729dec2",
    prompt: "481f643dfcbc1cbfab675086c6f0d9eb70d289f103574dbc6c7d483740365b38",
  },
  "sokoban/two-boxes@1": {
    tasks: "1cf81f28fb887d7ba9b717e3fc4984003cc54b2d1837f2a06eed361be4bc998a",
    environment: "10d4452f3c5b5ff55d30b181465725d481f2d714c77a4527bc6c2b4e70630d2d",
    prompt: "cd9de56339dfb08802ddb0ded0242bf37e32912da846c5bc5fd0038e73b677db",
  },
  "cards/number-line@1": {
    tasks: "ad563ebc3c1e5b9778c6ae74559dfa72b020a9051cfee2ec9ca0865b8212e23b",
    environment: "0ceb1cfca25901014eeebbe8740d59564222b1dc1c2c2a6c2789bd325e80eb82",
    prompt: "106092c9087f7026aeef63715704b1ba0b0835e108e484cbce4f7266d458708a",
  },
  "cards/ez-points@1": {
    tasks: "0e7289ee6dd4c496cf251bd0261c9fef7c51d1fdeded2467de5ec4486529b8e8",
    environment: "8999f407a6a09b489ac88d02b6ddc4b70d7492605b3a46ff053f8c3d61ace5cb",
    prompt: "3361ce48f1d5265394bead693920d5f3ba0f442766ad374fb154284a69740a8d",
  },
  "cards/points24@1": {
    tasks: "eb66fc25b8d6758160b4446721e1b16e82c1544486da380e4624aee0bd71ecce",
    environment: "e1e146e6ffce1b52d4f69b2485f55380a7fc4b2a1d79c707de0114bdede33de3",
    prompt: "fa274bd7f78e75dc7a00b9e427558b71084102a003e0ab8ffe5226250b27f69d",
  },
  "cards/blackjack@1": {
    tasks: "c43ccb7f9fdefb309ed6b0277cdf9a69fe63ebe60856deefcac8a60a30c33c98",
    environment: "29df4ac31132fde0d764141e736ee5cae696b7bd13db2f7ae375a1368d73c99c",
    prompt: "ebc37228f71b030cd83298bcd229633a944d5b6fb1f0943884a967bf45a61f40",
  },
  "sql/shops@1": {
    tasks: "06a1cd12222bff3586688d634295413c3bff72be59013c527aa40da52376b7d6",
    environment: "5d292e973e0b14bc4c538e4511cd7bf2caa56d7d28e2579a3dab61f303e8b7a5",
    prompt: "90a39a9ac797b04bd75e80dc89eae84c242d640fa5d627de5b03b08f094af1af",
  },
}
