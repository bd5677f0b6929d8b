// /v1/house: who leads, and what stands in the database's way. It tells of the whole deployment, so it is for those who run it.

import { Type } from "typebox";
import { Instant } from "#domain/notification.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { mustOperate } from "#steps/manage/keys.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findOpenTransactions, readQueueTables, type TableStanding } from "#store/examine.ts";
import { type Lead, listLeads } from "#store/leadership.ts";

const HouseBody = Type.Object({
  leaders: Type.Array(
    Type.Object({ name: Type.String(), holder: Type.String(), leads: Type.Boolean(), until: Instant }),
  ),
  oldestTransaction: Type.Optional(
    Type.Object({ who: Type.String(), state: Type.String(), ageMs: Type.Integer({ minimum: 0 }) }),
  ),
  tables: Type.Array(
    Type.Object({
      name: Type.String(),
      rows: Type.Integer(),
      deadRows: Type.Integer(),
      vacuumedAt: Type.Optional(Instant),
    }),
  ),
});

export function houseRoutes({ db }: { db: Queryable }): Route[] {
  const house = route({
    method: "GET",
    path: "/v1/house",
    summary: "Who leads, the oldest open transaction, and dead rows of the queue's tables",
    detail:
      "For the default tenant's administrators. `leaders` are the roles that one process has at a time, and who has each of them, or had it last: without `leads` nobody does it now. " +
      "`oldestTransaction` is that of others in this database, as far as Carillon's own user may see it; it holds up vacuum, and followers if it has written something. " +
      "`tables` are as PostgreSQL's statistics have them: an estimate.",
    tag: "Operations",
    scope: "admin",
    turn: "large",
    answers: { 200: { description: "How the house stands", schema: HouseBody } },
    async handle({ actor }) {
      orThrow(mustOperate(actor));
      const [oldest] = await findOpenTransactions(db, 0);
      return {
        status: 200,
        body: {
          leaders: (await listLeads(db)).map(bodyOfLead),
          ...(oldest && { oldestTransaction: { ...oldest, ageMs: Math.round(oldest.ageMs) } }),
          tables: (await readQueueTables(db)).map(bodyOfTable),
        },
      };
    },
  });
  return [house];
}

const bodyOfLead = ({ name, holder, isHeld, until }: Lead) => ({
  name,
  holder,
  leads: isHeld,
  until: until.toISOString(),
});

const bodyOfTable = ({ vacuumedAt, ...table }: TableStanding) => ({
  ...table,
  ...(vacuumedAt && { vacuumedAt: vacuumedAt.toISOString() }),
});
