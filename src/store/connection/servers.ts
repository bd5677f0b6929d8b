// The servers that a database URL names, and which of them to use.
//
// libpq takes several, and node-postgres one: `postgres://a:5432,b/db`, `postgres:///db?host=a,b&port=5432,5433`. Of several the
// one that can be written to is used, for without writing nothing here works; so `target_session_attrs=read-write` goes without saying.

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

/** `url` leads to this one alone. */
export type Server = { host: string; port: number; url: string };

// A password with one of / ? # in it, not encoded, makes another URL of it: what is then read as a host, a database or a setting
// does not look like one.
const FORM = /^(postgres(?:ql)?:\/\/)(?:([^/?#]*)@)?([^/?#]*)(\/[^?#@]*)?(?:\?([^#]*))?$/;
const HOST = /^(?:\/.*|\[[\da-f:.%]+\]|[^/:@[\]]*)$/i;
const SETTING = /^[\w.-]+$/;
const DEFAULT_PORT = 5432;
const MAX_PORT = 65_535;
const WRITABLE = new Set(["read-write", "primary", "any"]);
/** A server that does not answer in this time is tried no longer, and the next one is tried beside it after this. */
const PROBE_MS = 2_000;
const HEAD_START_MS = 250;

/** In the order of the URL. Undefined when it cannot be read, or asks for a server that only reads. */
export function serversOf(url: string): Server[] | undefined {
  const [, scheme, who, given = "", path = "", query = ""] = FORM.exec(url) ?? [];
  if (scheme === undefined) return undefined;
  const settings = new URLSearchParams(query);
  if (!WRITABLE.has(settings.get("target_session_attrs") ?? "any")) return undefined;
  const named = settings.get("host")?.split(",") ?? given.split(",").map((one) => one.replace(/:\d*$/, ""));
  const inHosts = settings.has("host") ? [] : given.split(",").map((one) => /:(\d+)$/.exec(one)?.[1] ?? "");
  const ports = settings.get("port")?.split(",") ?? inHosts;
  if (ports.length > 1 && ports.length !== named.length) return undefined;
  if (![...settings.keys()].every((name) => SETTING.test(name))) return undefined;
  for (const name of ["host", "port", "target_session_attrs"]) settings.delete(name);

  const servers = named.map((one, n) => {
    const host = hostOf(one);
    const port = Number((ports.length === 1 ? ports[0] : ports[n]) || DEFAULT_PORT);
    const own = new URLSearchParams(settings);
    if (host) own.set("host", host);
    own.set("port", String(port));
    return (
      host !== undefined && { host, port, url: `${scheme}${who === undefined ? "" : `${who}@`}${path || "/"}?${own}` }
    );
  });
  const isOne = (server: Server | false): server is Server =>
    server && (server.host !== "" || servers.length === 1) && Number.isInteger(server.port) && server.port <= MAX_PORT;
  return servers.every(isOne) ? servers : undefined;
}

function hostOf(given: string): string | undefined {
  try {
    const host = decodeURIComponent(given);
    return HOST.test(host) ? host.replace(/^\[(.*)\]$/, "$1") : undefined;
  } catch {
    return undefined;
  }
}

/** None of several servers can be written to. */
export class NoServer extends Error {
  override name = "NoServer";
  readonly code = "ENOSERVER";
}

/** The first of them that can be written to; a single one is not asked. Throws when there is none. */
export async function findServer(servers: readonly Server[]): Promise<Server> {
  const [only] = servers;
  if (only && servers.length === 1) return only;
  const found = new AbortController();
  const probes = servers.map(async (server, n) => {
    // Not one after the other: one that is silent would keep us from the next.
    await sleep(n * HEAD_START_MS, undefined, { signal: found.signal });
    await probe(server);
    return server;
  });
  try {
    return await Promise.any(probes);
  } catch (error) {
    const reasons = error instanceof AggregateError ? error.errors : [error];
    const known = servers.map(({ host }, n) => `${host}: ${reasonOf(reasons[n])}`);
    throw new NoServer(`no server of the database can be written to (${known.join("; ")})`, { cause: error });
  } finally {
    found.abort();
  }
}

/** The same database at the one server that can be written to now. */
export async function leadingUrl(url: string): Promise<string> {
  const servers = serversOf(url);
  return servers && servers.length > 1 ? (await findServer(servers)).url : url;
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message || String(error) : String(error));

async function probe({ url }: Server): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "carillon probe",
    connectionTimeoutMillis: PROBE_MS,
    query_timeout: PROBE_MS,
  });
  client.on("error", () => undefined);
  try {
    await client.connect();
    if (!(await isWritable(client))) throw new Error("it only reads");
  } finally {
    client.end().catch(() => undefined);
  }
}

export async function isWritable(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ writable: boolean }>(
    "select not pg_is_in_recovery() and not current_setting('default_transaction_read_only')::boolean as writable",
  );
  return rows[0]?.writable ?? false;
}
