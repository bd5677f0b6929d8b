// What a tool is: data, like a route.

import type { TSchema } from "typebox";
import type { KeyActor } from "#domain/actor.ts";
import type { Scope } from "#domain/api-key.ts";
import type { Queryable } from "#store/connection/database.ts";
import type { Inside } from "./inside.ts";

export type Arguments = { [name: string]: unknown };
/** `text` is for whoever reads it, `data` for a program. */
export type Told = { text: string; data: { [field: string]: unknown } };
export type ToolWorld = { inside: Inside; actor: KeyActor; db: Queryable };

export type Tool = {
  name: string;
  title: string;
  description: string;
  scope: Scope;
  input: TSchema;
  /** Looks, and changes nothing. Of a tool that changes something, its dry run. */
  look: (given: Arguments, world: ToolWorld) => Promise<Told>;
  /** Does what was looked at. `once` is the same for the same confirmation, however often it comes; `seen` is what the dry run told. */
  change?: (given: Arguments, world: ToolWorld, confirmed: { once: string; seen: Told["data"] }) => Promise<Told>;
};
