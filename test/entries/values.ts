// The values of all entry points as one object; no two have one of the same name.

import * as advantages from "../../src/entries/advantages.ts"
import * as agents from "../../src/entries/agents.ts"
import * as algorithms from "../../src/entries/algorithms.ts"
import * as curricula from "../../src/entries/curricula.ts"
import * as data from "../../src/entries/data.ts"
import * as engine from "../../src/entries/engine.ts"
import * as alfworld from "../../src/entries/environments/alfworld.ts"
import * as cards from "../../src/entries/environments/cards.ts"
import * as openenv from "../../src/entries/environments/openenv.ts"
import * as search from "../../src/entries/environments/search.ts"
import * as sokoban from "../../src/entries/environments/sokoban.ts"
import * as sql from "../../src/entries/environments/sql.ts"
import * as tasks from "../../src/entries/environments/tasks.ts"
import * as webshop from "../../src/entries/environments/webshop.ts"
import * as environments from "../../src/entries/environments.ts"
import * as evaluation from "../../src/entries/evaluation.ts"
import * as hooks from "../../src/entries/hooks.ts"
import * as main from "../../src/entries/index.ts"
import * as logging from "../../src/entries/logging.ts"
import * as loop from "../../src/entries/loop.ts"
import * as losses from "../../src/entries/losses.ts"
import * as native from "../../src/entries/native.ts"
import * as prompts from "../../src/entries/prompts.ts"
import * as view from "../../src/entries/view.ts"

export const entryValues = {
  ...main,
  ...advantages,
  ...agents,
  ...algorithms,
  ...curricula,
  ...data,
  ...engine,
  ...environments,
  ...alfworld,
  ...cards,
  ...openenv,
  ...search,
  ...sokoban,
  ...sql,
  ...tasks,
  ...webshop,
  ...evaluation,
  ...hooks,
  ...logging,
  ...loop,
  ...losses,
  ...native,
  ...prompts,
  ...view,
}
