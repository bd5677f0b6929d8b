// Access tokens for Google's APIs, from a service account (RFC 7523).
//
// A token is kept until shortly before it ends. Sends that find none share one request, which therefore listens to
// none of their signals: whoever is out of time leaves, the others still get the token.

import { type Http, retryAfterMs } from "#wire/http.ts";
import { at, jsonOf, textAt } from "#wire/json-answer.ts";
import { readPrivateKey, signJwt } from "#wire/jwt.ts";
import { AWAY, BAD_CREDENTIALS, type Failed, replyOf, verdictOfStatus } from "#wire/verdict.ts";

/** The file that Google's console hands out, as far as it is needed. */
export type ServiceAccount = {
  project_id: string;
  client_email: string;
  private_key: string;
  private_key_id?: string;
  token_uri?: string;
};

/** Either a token, or why there is none. In that case nothing was sent. */
export type Granted = { token: string } | { refused: Failed };

export type GoogleTokens = {
  get(signal: AbortSignal): Promise<Granted>;
  /** Forgets a token that was refused, unless another has taken its place. */
  drop(token: string): void;
};

const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ASK_MS = 10_000;
const LIFE_SECONDS = 3600;
const EARLY_MS = 300_000;
const LATE: Granted = { refused: { kind: "unavailable", reason: "no access token in time", category: "timeout" } };

export function createGoogleTokens(options: {
  account: ServiceAccount;
  scope: string;
  http: Http;
  tokenUrl?: string | undefined;
  now: () => number;
}): GoogleTokens {
  const { account, scope, http, now } = options;
  const url = options.tokenUrl ?? account.token_uri ?? "https://oauth2.googleapis.com/token";
  const key = readPrivateKey(account.private_key, "rsa", "fcm", "/serviceAccount/private_key");
  let held: { token: string; staleAt: number } | undefined;
  let asking: Promise<Granted> | undefined;

  async function ask(): Promise<Granted> {
    const granted = await request(http, url, assertion(), now);
    if ("refused" in granted) return granted;
    // A token that lives for less than ten minutes is used for half its life.
    const lifeMs = granted.lifeSeconds * 1000;
    held = { token: granted.token, staleAt: now() + lifeMs - Math.min(EARLY_MS, lifeMs / 2) };
    return held;
  }

  function assertion(): string {
    const iat = Math.floor(now() / 1000);
    const claims = { iss: account.client_email, scope, aud: url, iat, exp: iat + LIFE_SECONDS };
    return signJwt("RS256", key, claims, account.private_key_id ? { kid: account.private_key_id } : {});
  }

  return {
    async get(signal) {
      if (held && now() < held.staleAt) return held;
      if (signal.aborted) return LATE;
      asking ??= ask().finally(() => {
        asking = undefined;
      });
      return before(signal, asking);
    },
    drop(token) {
      if (held?.token === token) held = undefined;
    },
  };
}

async function request(
  http: Http,
  url: string,
  assertion: string,
  now: () => number,
): Promise<{ token: string; lifeSeconds: number } | { refused: Failed }> {
  const answer = await http.ask({
    url,
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ grant_type: GRANT, assertion }).toString(),
    signal: AbortSignal.timeout(ASK_MS),
  });
  // Without a token the message never left, even where the request for the token may have arrived.
  if ("kind" in answer) {
    return { refused: { kind: "unavailable", reason: `no access token: ${answer.reason}`, category: "network" } };
  }
  const body = jsonOf(answer.text);
  const token = textAt(body, "access_token");
  if (answer.status === 200 && token) {
    const told = Number(at(body, "expires_in"));
    return { token, lifeSeconds: told > 0 ? Math.min(told, LIFE_SECONDS) : LIFE_SECONDS };
  }
  const code = textAt(body, "error") ?? String(answer.status);
  const words = textAt(body, "error_description") ?? `the token endpoint answered ${answer.status}`;
  const general = verdictOfStatus(answer.status);
  // invalid_grant and its like are told with 400.
  const verdict = answer.status === 400 ? BAD_CREDENTIALS : general.kind === "ambiguous" ? AWAY : general;
  const waitMs = retryAfterMs(answer.header("retry-after"), now());
  return { refused: replyOf(verdict, { reason: `no access token: ${words}`, code, retryAfterMs: waitMs }) };
}

/** What was promised, or word that time ran out before. */
function before(signal: AbortSignal, promise: Promise<Granted>): Promise<Granted> {
  return new Promise((resolve, reject) => {
    const leave = () => resolve(LATE);
    signal.addEventListener("abort", leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}
