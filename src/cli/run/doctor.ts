// carillon doctor: what is wrong, and what to do about it. It looks from both sides, at the database and at the service, and changes nothing.

import { EXIT, type Run, type World } from "../command.ts";
import { type Colour, paintOf } from "../paint.ts";
import { examineDatabase } from "./examine-database.ts";
import { examineService } from "./examine-service.ts";
import type { Finding } from "./findings.ts";

const COLOURS: { [state in Finding["state"]]: Colour } = { ok: "green", warn: "yellow", fail: "red" };
const WIDTH = 14;

export const doctor: Run = async (_call, world) => {
  const data = await examine(world);
  const failed = data.filter(({ state }) => state === "fail").length;
  const warned = data.filter(({ state }) => state === "warn").length;
  const paint = paintOf(world.screen);
  const lines = data.flatMap(({ name, state, detail, advice }) => [
    `${paint(COLOURS[state], state.padEnd(4))}  ${name.padEnd(WIDTH)}  ${detail}`,
    ...(advice === undefined ? [] : [`${" ".repeat(8 + WIDTH)}→ ${advice}`]),
  ]);
  const sum = failed + warned === 0 ? "all is well" : `${failed} to mend, ${warned} to look at`;
  return {
    json: { state: failed > 0 ? "fail" : warned > 0 ? "warn" : "ok", data },
    text: [...lines, "", sum],
    code: failed > 0 ? EXIT.failed : EXIT.done,
  };
};

/** What cannot even be looked at is a finding, too. */
async function examine(world: World): Promise<Finding[]> {
  const [database, service] = await Promise.all([examineDatabase(world), examineService(world)]);
  return [...database, ...service];
}
