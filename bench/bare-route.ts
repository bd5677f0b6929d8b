// A process with the least that could be called the same service: a Fastify route that reads JSON,
// validates it as Carillon does and answers as much. No authentication, no database, no headers of
// its own. Whatever Carillon answers slower than this is what keeping a notification costs.

import Fastify from "fastify";
import { createIds } from "../src/domain/ids.ts";
import { faultsOfRequest } from "../src/domain/validate.ts";

const newId = createIds();
const app = Fastify({ logger: false });

app.post("/v1/notifications", (request, reply) => {
  const now = new Date();
  const errors = faultsOfRequest(request.body, now);
  if (errors.length > 0) return reply.code(400).send({ errors });
  return reply.code(202).send({
    notificationId: newId(),
    status: "queued",
    channel: "email",
    priority: "normal",
    enqueuedAt: now.toISOString(),
  });
});

console.log(`listening on ${await app.listen({ host: "127.0.0.1", port: 0 })}`);
process.once("SIGTERM", () => process.exit(0));
