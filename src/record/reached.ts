// Who got what they were to get after all: a later one with the same template was sent to the same user.
//
// Asked for each user once, however many letters of theirs there are: what is read grows with the letters, and not with their square.

import type { Queryable } from "#store/connection/database.ts";

type Letter = { id: string; userId: string | null; templateId: string | null };
/** Of one user; several templates are none in particular. */
type Asked = { first: string; most: number; template: string | null };

/** How many later ones to the same user are looked at, besides as many as there are letters. */
const LATER = 20;

const keyOf = (userId: string, templateId: string): string => JSON.stringify([userId, templateId]);
/** It stands in a request as it is, without an escape. */
const isPlain = (template: string): boolean => /^[\w.-]+$/.test(template);

/** Of these letters, those whose users were reached. */
export async function findReached<Given extends Letter>(
  db: Queryable,
  tenant: number,
  letters: readonly Given[],
): Promise<ReadonlySet<Given>> {
  const users = new Map<string, Asked>();
  let lowest: string | undefined;
  for (const { id, userId, templateId } of letters) {
    if (userId === null || templateId === null) continue;
    const { first = id, most = LATER, template = isPlain(templateId) ? templateId : null } = users.get(userId) ?? {};
    users.set(userId, {
      first: id < first ? id : first,
      most: most + 1,
      template: template === templateId ? template : null,
    });
    if (lowest === undefined || id < lowest) lowest = id;
  }
  if (users.size === 0) return new Set();
  const asked = [...users.values()];
  // Where users have several letters, these are each other's later ones, and are known to have failed.
  const own = users.size < letters.length ? letters.map(({ id }) => id) : [];
  const { rows: clock } = await db.query("select carillon.first_id(carillon.now() + interval '1 day') as beyond");
  // $7 and $8 bound what is bounded already: so it is known beforehand which partitions have it. What does not even mention the template is not
  // taken apart.
  const { rows } = await db.query<{ userId: string; templateId: string; id: string }>(
    `select u.id as "userId", o.template as "templateId", (array_agg(o.id order by o.id desc))[1] as id
     from unnest($2::text[], $3::uuid[], $4::int[], $5::text[]) as u(id, first, most, template) cross join lateral (
       select n.id, case when u.template is null or strpos(n.request::text, u.template) > 0 then n.request #>> '{content,templateId}' end as template
       from (
         select n.id, n.request from carillon.notifications n where n.tenant = $1 and n.user_id = u.id and n.id > u.first and n.id > $7 and n.id < $8
         order by n.id limit u.most
       ) n where n.id <> all ($6::uuid[])
     ) o where (u.template is null or o.template = u.template) and o.template is not null and (
       select x.to_status from carillon.events x where x.notification_id = o.id and x.notification_id > $7 and x.notification_id < $8
       order by x.seq desc, x.at desc limit 1
     ) in ('sent', 'delivered') group by u.id, o.template`,
    [
      ...[tenant, [...users.keys()], asked.map(({ first }) => first), asked.map(({ most }) => most)],
      ...[asked.map(({ template }) => template), own, lowest, clock[0]?.beyond],
    ],
  );
  const newest = new Map(rows.map(({ userId, templateId, id }) => [keyOf(userId, templateId), id]));
  if (newest.size === 0) return new Set();
  const isReached = ({ id, userId, templateId }: Letter) =>
    userId !== null && templateId !== null && (newest.get(keyOf(userId, templateId)) ?? "") > id;
  return new Set(letters.filter(isReached));
}
