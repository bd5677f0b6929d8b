// Why a database cannot be used, in a sentence for whoever set it up. What may pass by waiting is not here: see isOutage().

import pg from "pg";

/** The message is the sentence. */
export class UnusableDatabaseError extends Error {
  override name = "UnusableDatabaseError";
}

/** PostgreSQL's own words name users, databases and hosts, never passwords. */
const REFUSALS: { [code: string]: string } = {
  "28P01": "Check the password in DATABASE_URL.",
  "28000": "Check the user in DATABASE_URL, and who may connect in the server's pg_hba.conf.",
  "3D000": "Create it, or correct the name at the end of DATABASE_URL.",
  "42501": "The user in DATABASE_URL must be allowed to create the schema carillon, or own it.",
};

const CERTIFICATE =
  /^(CERT_|SELF_SIGNED|DEPTH_ZERO_SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|ERR_TLS_CERT)|does not support SSL/;

/** Undefined where waiting may help, or where it is none of these. */
export function refusalOf(error: unknown): UnusableDatabaseError | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const told = (why: string, what: string) => new UnusableDatabaseError(`${why}. ${what}`, { cause: error });
  if (error instanceof pg.DatabaseError && REFUSALS[code])
    return told(`the database refused us: ${error.message}`, REFUSALS[code]);
  if (code === "ENOTFOUND") return told(`the database's host is not known: ${error.message}`, "Correct DATABASE_URL.");
  if (CERTIFICATE.test(code) || CERTIFICATE.test(error.message)) {
    return told(
      `no secure connection to the database: ${error.message}`,
      "Check sslmode and sslrootcert in DATABASE_URL.",
    );
  }
  return undefined;
}
