// A real RabbitMQ, from Debian (3.10), without its management.

import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { debianProgram } from "../debian.ts";
import { begin, end, freePort, type Server, serve, serverHome } from "./server.ts";

export const NO_RABBITMQ = "there is no RabbitMQ, and it cannot be installed here";

export type RabbitMQ = Server & { url: string };

/** Undefined where it cannot be had. Ready in 6 to 16 s, with about 150 MB. `settings`: more lines of rabbitmq.conf. */
export async function startRabbitMQ(settings = ""): Promise<RabbitMQ | undefined> {
  // Not the one in /usr/sbin, which insists on root or a user of its own.
  const program = debianProgram("rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server");
  if (program === undefined) return undefined;
  const home = await serverHome("rabbitmq", true);
  const [port, distributionPort, epmdPort] = [await freePort(), await freePort(), await freePort()];
  await writeFile(
    join(home, "rabbitmq.conf"),
    `listeners.tcp.1 = 127.0.0.1:${port}\nlog.console = true\nlog.file = false\n${settings}\n`,
  );
  await writeFile(join(home, "enabled_plugins"), "[].\n");

  // The register of Erlang's nodes. RabbitMQ would begin one for the whole machine, and leave it behind.
  const epmdArgs = ["-port", `${epmdPort}`, "-address", "127.0.0.1"];
  const epmd = begin({ program: "/usr/bin/epmd", args: epmdArgs, asNobody: true }, join(home, "epmd.log"));
  const env = environment(home, { distributionPort, epmdPort });
  const isReady = () => accepts(port);
  try {
    const server = await serve(home, { program, args: [], env, asNobody: true }, isReady);
    const stop = async () => {
      await end(epmd, "SIGKILL");
      await server.stop();
    };
    return { ...server, stop, url: `amqp://guest:guest@127.0.0.1:${port}` };
  } catch (error) {
    await end(epmd, "SIGKILL");
    throw error;
  }
}

const environment = (home: string, ports: { distributionPort: number; epmdPort: number }) => ({
  HOME: home,
  // By this it becomes the server, where it else would be a shell that waits for it.
  detached: "true",
  RABBITMQ_NODENAME: "rabbit@localhost",
  RABBITMQ_CONF_ENV_FILE: "/dev/null",
  RABBITMQ_CONFIG_FILE: join(home, "rabbitmq.conf"),
  RABBITMQ_ENABLED_PLUGINS_FILE: join(home, "enabled_plugins"),
  RABBITMQ_MNESIA_BASE: join(home, "data"),
  RABBITMQ_LOG_BASE: join(home, "logs"),
  RABBITMQ_DIST_PORT: `${ports.distributionPort}`,
  RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-kernel inet_dist_use_interface {127,0,0,1}",
  ERL_EPMD_PORT: `${ports.epmdPort}`,
  ERL_EPMD_ADDRESS: "127.0.0.1",
});

/** It listens when all else is done. */
const accepts = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
