// Who is signed in, and what that lets them do.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { ask, get, Refused } from "./api.ts";

export type Scope = "send" | "read" | "admin";
export type Who = {
  key: { id: string; name: string };
  tenant: string;
  scopes: Scope[];
  session?: { id: string; expiresAt: string };
};

/** Undefined when nobody is. */
export async function findWho(): Promise<Who | undefined> {
  try {
    return await get<Who>("/v1/sessions");
  } catch (error) {
    if (error instanceof Refused && [401, 403, 429].includes(error.status)) return undefined;
    throw error;
  }
}

export const signIn = (key: string): Promise<Who> => ask("POST", "/v1/sessions", { key });
export const signOut = (): Promise<void> => ask("DELETE", "/v1/sessions");

export const WhoContext = createContext<Who | undefined>(undefined);

export const useWho = (): Who | undefined => useContext(WhoContext);

/** Whether they may do what needs this scope. */
export function useMay(needed: Scope): boolean {
  return may(useWho(), needed);
}

/** Whether they run the deployment. */
export function useOperates(): boolean {
  const who = useWho();
  return who?.tenant === "default" && may(who, "admin");
}

export const may = (who: Who | undefined, needed: Scope): boolean =>
  who !== undefined && (who.scopes.includes(needed) || who.scopes.includes("admin"));
