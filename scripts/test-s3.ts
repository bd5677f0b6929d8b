// npm run test:s3: the archive on a real server that speaks S3. versitygw is built once, by Go, and kept outside of the repository.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const VERSION = "v1.8.0";
const cache = process.env.CARILLON_TEST_CACHE ?? join(homedir(), ".cache", "carillon-test");
const program = process.env.CARILLON_TEST_S3 ?? join(cache, `versitygw-${VERSION}`, "versitygw");

if (!existsSync(program)) {
  console.log(`building versitygw ${VERSION} into ${cache}: 10 minutes, the first time`);
  const { status, error } = spawnSync(
    "go",
    ["install", "-trimpath", `github.com/versity/versitygw/cmd/versitygw@${VERSION}`],
    {
      stdio: "inherit",
      env: { ...process.env, GOBIN: join(cache, `versitygw-${VERSION}`), CGO_ENABLED: "0", GOFLAGS: "-buildvcs=false" },
    },
  );
  if (error || status !== 0) {
    console.error(
      `versitygw cannot be built here${error ? `: ${error.message}` : ""}. Set CARILLON_TEST_S3 to the program.`,
    );
    process.exit(1);
  }
}
const { status } = spawnSync(process.execPath, ["test/run.ts", "test/archive/s3-server.test.ts"], {
  stdio: "inherit",
  env: { ...process.env, CARILLON_TEST_S3: program },
});
process.exit(status ?? 1);
