// Connections to one SMTP server, kept open and lent out for one mail each.
//
// nodemailer brings a pool of its own, but that one cannot give up a single mail when a signal says so, and it sends a
// mail again on its own when a connection breaks: both would make what we say about a mail untrue.

import type { Socket } from "node:net";
import SMTPConnection, { type SMTPConnectionOptions } from "nodemailer/lib/smtp-connection";
import { unquoted } from "./smtp-replies.ts";

export type Connections = {
  /** Waits for a free connection if there are too many. Rejects with what went wrong, also when the signal aborts. */
  take(signal: AbortSignal): Promise<Lent>;
  /** Opens one more and closes it at once: whether the server can be reached and knows us. */
  probe(signal: AbortSignal): Promise<void>;
  close(): void;
};
export type Lent = {
  connection: SMTPConnection;
  /** It has carried mail before, so the server may have closed it meanwhile. */
  isUsed: boolean;
  giveBack(): void;
  /** For one whose mail was refused: what was begun on it is taken back first. */
  resetAndGiveBack(): void;
  drop(): void;
};
export type ConnectionsOptions = {
  connect: SMTPConnectionOptions;
  /** Opens the socket to a host that is not the operator's: what it says before it has proved a mail server is not repeated. */
  dial?: ((signal: AbortSignal) => Promise<Socket>) | undefined;
  login?: { user: string; pass: string };
  /** Without TLS the login is left out rather than shown to the network, unless this is set. */
  mayLoginInTheClear: boolean;
  most: number;
  /** Some servers count the mails of a connection. */
  mailsPerConnection: number;
  idleMs: number;
};

const RESET_MS = 5_000;

type Line = { connection: SMTPConnection; mails: number; idleTimer?: NodeJS.Timeout };

export function createConnections(options: ConnectionsOptions): Connections {
  const { most, mailsPerConnection, idleMs } = options;
  const idle: Line[] = [];
  const waiting: (() => void)[] = [];
  let count = 0;
  let isClosed = false;

  function lend(line: Line): Lent {
    clearTimeout(line.idleTimer);
    const { connection } = line;
    const isUsed = line.mails > 0;
    line.mails++;
    let isLent = true;
    const drop = () => {
      if (!isLent) return;
      isLent = false;
      connection.close();
      free();
    };
    const giveBack = () => {
      if (!isLent) return;
      if (isClosed || connection.destroyed || line.mails >= mailsPerConnection) return drop();
      isLent = false;
      line.idleTimer = setTimeout(() => forget(line), idleMs).unref();
      idle.push(line);
      waiting.shift()?.();
    };
    const resetAndGiveBack = () => {
      if (connection.destroyed) return drop();
      // Neither a server that breaks off now nor one that falls silent may keep the place for good.
      const late = setTimeout(drop, RESET_MS).unref();
      connection.once("end", drop);
      connection.reset((error) => {
        clearTimeout(late);
        connection.off("end", drop);
        if (error) drop();
        else giveBack();
      });
    };
    return { connection, isUsed, drop, giveBack, resetAndGiveBack };
  }

  function free(): void {
    count--;
    waiting.shift()?.();
  }

  /** An idle one is closed, by us or by the server. */
  function forget(line: Line): void {
    const at = idle.indexOf(line);
    if (at === -1) return;
    idle.splice(at, 1);
    clearTimeout(line.idleTimer);
    line.connection.quit();
    line.connection.close();
    free();
  }

  return {
    async take(signal) {
      while (!isClosed) {
        if (signal.aborted) {
          // It may have been woken for a free place: that is somebody else's now.
          waiting.shift()?.();
          throw signal.reason;
        }
        const line = idle.pop();
        if (line) return lend(line);
        if (count < most) {
          count++;
          try {
            const fresh: Line = { connection: await open(options, signal), mails: 0 };
            fresh.connection.once("end", () => forget(fresh));
            return lend(fresh);
          } catch (error) {
            free();
            throw error;
          }
        }
        await turn(waiting, signal);
      }
      throw new Error("the provider is closed");
    },
    async probe(signal) {
      const connection = await open(options, signal);
      connection.quit();
      connection.close();
    },
    close() {
      isClosed = true;
      for (const line of [...idle]) forget(line);
      for (const wake of waiting.splice(0)) wake();
    },
  };
}

/** Resolves when it is one's turn to look again. */
function turn(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const wake = () => {
      signal.removeEventListener("abort", leave);
      resolve();
    };
    const leave = () => {
      waiting.splice(waiting.indexOf(wake), 1);
      reject(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    waiting.push(wake);
  });
}

async function open(options: ConnectionsOptions, signal: AbortSignal): Promise<SMTPConnection> {
  const { dial, connect } = options;
  if (!dial) return greet(options, connect, signal);
  try {
    return await greet(options, { ...connect, connection: await dial(signal) }, signal);
  } catch (error) {
    throw signal.aborted ? error : unquoted(error);
  }
}

function greet(
  { login, mayLoginInTheClear }: ConnectionsOptions,
  connect: SMTPConnectionOptions,
  signal: AbortSignal,
): Promise<SMTPConnection> {
  return new Promise((resolve, reject) => {
    const connection = new SMTPConnection(connect);
    const stop = () => fail(signal.reason);
    const done = () => {
      signal.removeEventListener("abort", stop);
      resolve(connection);
    };
    function fail(error: unknown): void {
      signal.removeEventListener("abort", stop);
      // Before the close, which is told as one more failure.
      reject(error);
      connection.close();
    }
    signal.addEventListener("abort", stop, { once: true });
    // It stays for the connection's life: an error without a listener would end the process.
    connection.on("error", fail);
    connection.once("end", () => fail(new Error("the server closed the connection")));
    connection.connect((error) => {
      if (error) return fail(error);
      if (!login || !connection.allowsAuth) return done();
      if (!connection.secure && !mayLoginInTheClear) {
        return fail(new Error("the server offers no TLS, and the password is not sent without"));
      }
      connection.login(login, (refusal) => (refusal ? fail(refusal) : done()));
    });
  });
}
