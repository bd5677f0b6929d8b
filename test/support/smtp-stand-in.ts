// Stands in for an SMTP server: says what it is told at each step, or breaks off there.

import { createServer, type Socket } from "node:net";
import { type Listening, listening } from "./listening.ts";

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
  connections: Listening["connections"];
  /** Ends idle connections as a server does; resolves when they are gone. */
  dropConnections(): Promise<void>;
  forsaken: Listening["forsaken"];
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
  function act(socket: Socket, step: Step, command = ""): void {
    steps.push(step);
    const told = says[step];
    const what = typeof told === "string" ? told : told(command);
    if (what === "reset") socket.resetAndDestroy();
    else if (what === "end") socket.end();
    else if (what === "stall") socket.pause();
    else if (what !== "hang" && what !== "") socket.write(`${what}\r\n`);
    if (step === "quit") socket.end();
    kept.happened();
  }

  const server = createServer((socket) => {
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
  const kept = await listening(server);

  return {
    port: kept.port,
    steps,
    mails,
    say(step, what) {
      says[step] = what;
    },
    reached: (step, times = 1) => kept.until(() => steps.filter((one) => one === step).length >= times),
    connections: kept.connections,
    dropConnections() {
      for (const socket of kept.sockets.keys()) socket.end();
      return kept.forsaken();
    },
    forsaken: kept.forsaken,
    close: kept.down,
  };
}
