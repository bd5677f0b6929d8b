// The partition that Kafka's own clients choose for a key: murmur2, with the sign left out, by the number of partitions.
//
// The client has the same in its `compatibilityPartitioner`, but reckons it in integers without bound: a twelfth of what it spends on a record.

const SEED = 0x9747b28c;
const MIX = 0x5bd1e995;

/** To be divided by the number of partitions; whoever produces does so. */
export function partitionOf(key: Uint8Array): number {
  const { length } = key;
  const whole = length & ~3;
  let hash = SEED ^ length;
  for (let at = 0; at < whole; at += 4) {
    let four = Math.imul(
      byte(key, at) | (byte(key, at + 1) << 8) | (byte(key, at + 2) << 16) | (byte(key, at + 3) << 24),
      MIX,
    );
    four = Math.imul(four ^ (four >>> 24), MIX);
    hash = Math.imul(hash, MIX) ^ four;
  }
  if (length > whole) {
    for (let at = length - 1; at >= whole; at--) hash ^= byte(key, at) << (8 * (at - whole));
    hash = Math.imul(hash, MIX);
  }
  hash = Math.imul(hash ^ (hash >>> 13), MIX);
  return (hash ^ (hash >>> 15)) & 0x7fffffff;
}

const byte = (key: Uint8Array, at: number): number => key[at] as number;
