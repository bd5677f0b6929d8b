// A server that speaks S3, with one bucket, in a process of its own so that its memory and its processor are nobody else's.

import { startFauxqs } from "fauxqs";

const server = await startFauxqs({ port: 0, logger: false });
server.createBucket("bench");
process.send?.({ port: server.port });
