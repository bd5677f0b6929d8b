// Stands in for an SMTP server: says what it is told at each step, or breaks off there.

import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";

/** `body` is the first of the message, `dot` its end. */
export type Step = "greeting" | "ehlo" | "mail" | "rcpt" | "data" | "body" | "dot" | "rset" | "quit";
/** A reply, or silence, or a broken connection; `stall` reads no more. */
export type Say = string | "hang" | "reset" | "end" | "stall";

export type SmtpStandIn = {
  port: number;
  /** The steps as they came, on all connections. */
  steps: Step[];
  /** The messages that were read up to the dot. */
  mails: string[];
  /** The same each time, or by the command that came. */
  say(step: Step, what: Say | ((command: string) => Say)): void;
  /** Resolves when the step has come this many times. */
  reached(step: Step, times?: number): Promise<void>;
  connections(): { ever: number; open: number };
  /** Ends idle connections as a server does; resolves when they are gone. */
  dropConnections(): Promise<void>;
  /** Resolves when the other side has closed all connections. */
  forsaken(): Promise<void>;
  close(): Promise<void>;
};

const USUAL: { [step in Step]: string } = {
  greeting: "220 stand-in ESMTP",
  ehlo: "250 stand-in",
  mail: "250 2.1.0 Ok",
  rcpt: "250 2.1.5 Ok",
  data: "354 End data with <CR><LF>.<CR><LF>",
  body: "",
  dot: "250 2.0.0 Ok: queued as 4F1A2",
  rset: "250 2.0.0 Ok",
  quit: "221 2.0.0 Bye",
};
const VERBS: { [verb: string]: Step } = {
  EHLO: "ehlo",
  HELO: "ehlo",
  MAIL: "mail",
  RCPT: "rcpt",
  DATA: "data",
  RSET: "rset",
  QUIT: "quit",
};

export async function startSmtpStandIn(): Promise<SmtpStandIn> {
  const says: { [step in Step]: Say | ((command: string) => Say) } = { ...USUAL };
  const steps: Step[] = [];
  const mails: string[] = [];
  const sockets = new Set<Socket>();
  const watchers = new Set<() => void>();
  let ever = 0;
  const tellAll = () => {
    for (const watcher of watchers) watcher();
  };
  const until = (isSo: () => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!isSo()) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
    });

  function act(socket: Socket, step: Step, command = ""): void {
    steps.push(step);
    const told = says[step];
    const what = typeof told === "string" ? told : told(command);
    if (what === "reset") socket.resetAndDestroy();
    else if (what === "end") socket.end();
    else if (what === "stall") socket.pause();
    else if (what !== "hang" && what !== "") socket.write(`${what}\r\n`);
    if (step === "quit") socket.end();
    tellAll();
  }

  const server = createServer((socket) => {
    ever++;
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      sockets.delete(socket);
      tellAll();
    });
    let rest = "";
    let isInMessage = false;
    let isBegun = false;
    socket.on("data", (part) => {
      rest += part.toString("latin1");
      if (isInMessage && !isBegun) {
        isBegun = true;
        act(socket, "body");
      }
      while (true) {
        const mark = isInMessage ? "\r\n.\r\n" : "\r\n";
        const at = rest.indexOf(mark);
        if (at === -1) return;
        const text = rest.slice(0, at);
        rest = rest.slice(at + mark.length);
        if (isInMessage) {
          isInMessage = false;
          isBegun = false;
          mails.push(text.slice(2));
          act(socket, "dot");
        } else {
          const step = VERBS[text.slice(0, 4).toUpperCase()];
          if (!step) socket.write("500 5.5.1 unknown\r\n");
          else {
            isInMessage = step === "data" && String(says.data).startsWith("354");
            // The line break before the dot of an empty message is the one after DATA.
            if (isInMessage) rest = `\r\n${rest}`;
            act(socket, step, text);
          }
        }
      }
    });
    act(socket, "greeting");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    port: (server.address() as AddressInfo).port,
    steps,
    mails,
    say(step, what) {
      says[step] = what;
    },
    reached: (step, times = 1) => until(() => steps.filter((one) => one === step).length >= times),
    connections: () => ({ ever, open: sockets.size }),
    dropConnections() {
      for (const socket of sockets) socket.end();
      return until(() => sockets.size === 0);
    },
    forsaken: () => until(() => sockets.size === 0),
    async close() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
