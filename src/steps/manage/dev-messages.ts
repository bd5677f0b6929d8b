// Forgets what the provider dev kept of a tenant.

import type { KeyActor } from "#domain/actor.ts";
import type { Queryable } from "#store/connection/database.ts";
import { clearDevMessages } from "#store/dev-messages.ts";

export const forgetDevMessages = (db: Queryable, actor: KeyActor): Promise<void> => clearDevMessages(db, actor.tenant);
