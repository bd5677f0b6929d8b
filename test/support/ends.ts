// Every test file ends: one that does not, because something in it is still open, fails by itself instead of stopping the whole run.

const MOST_MINUTES = 10;

setTimeout(() => {
  process.stderr.write(`${process.argv[1]} has not ended after ${MOST_MINUTES} minutes\n`);
  process.exit(1);
}, MOST_MINUTES * 60_000).unref();
