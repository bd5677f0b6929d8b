// Which network addresses a URL given by a tenant may lead to: public ones, and what the operator allows.
//
// Addresses are compared as numbers. An IPv6 address that carries an IPv4 address is judged by that one too, as a
// gateway or the kernel would send there what we send here.

import { isIPv4, isIPv6 } from "node:net";

type Address = { family: 4 | 6; bits: bigint };
type Range = Address & { prefix: number };

/** From the IANA special-purpose registries, and the metadata services that clouds put outside of them. */
const REFUSED: [name: string, ...cidrs: string[]][] = [
  // Azure's is a public address; the others lie in ranges below and stand here for their name.
  ["metadata", "169.254.169.254/32", "100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32", "fd00:ec2::254/128"],
  ["loopback", "127.0.0.0/8", "::1/128"],
  ["unspecified", "0.0.0.0/8", "::/128"],
  ["private", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10", "64:ff9b:1::/48"],
  ["link-local", "169.254.0.0/16", "fe80::/10"],
  ["carrier-grade NAT", "100.64.0.0/10"],
  ["multicast", "224.0.0.0/4", "ff00::/8"],
  // What its IPv4 part leads to is for a relay to decide, so none of it is let through.
  ["Teredo", "2001::/32"],
  ["documentation", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"],
  ["benchmarking", "198.18.0.0/15"],
  ["reserved", "192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4", "2001::/23", "100::/64", "5f00::/16"],
];
/** Everything else of IPv6 is not routed, whatever it will be one day. */
const GLOBAL_IPV6 = rangeOf("2000::/3");

/** Where an IPv4 address is found in an IPv6 one: mapped, translated, compatible, NAT64, 6to4. */
const CARRIERS: [range: Range, shift: bigint][] = [
  [rangeOf("::ffff:0:0/96"), 0n],
  [rangeOf("::ffff:0:0:0/96"), 0n],
  [rangeOf("::/96"), 0n],
  [rangeOf("64:ff9b::/96"), 0n],
  [rangeOf("2002::/16"), 80n],
];

const refusedRanges = REFUSED.flatMap(([name, ...cidrs]) => cidrs.map((cidr) => ({ name, range: rangeOf(cidr) })));

export type AddressRule = {
  /** Whether all that a host name leads to is allowed. */
  allowsHost(host: string): boolean;
  /** The name of the rule that refuses an address; undefined when it may be used. */
  refusalOf(address: string): string | undefined;
};

/** `allow` lists host names, addresses and CIDRs. Throws when one of them is none of these. */
export function addressRule(allow: readonly string[]): AddressRule {
  const isRange = (entry: string) => entry.includes("/") || parseAddress(entry) !== undefined;
  const ranges = allow.filter(isRange).map(rangeOf);
  const hosts = new Set(allow.filter((entry) => !isRange(entry)).map(hostOf));
  return {
    allowsHost: (host) => hosts.has(hostOf(host)),
    refusalOf(text) {
      const address = parseAddress(text);
      if (!address) return "not an address";
      const carried = carriedBy(address);
      const forms = carried ? [address, carried] : [address];
      if (forms.some((form) => ranges.some((range) => isIn(form, range)))) return undefined;
      const refused = refusedRanges.find(({ range }) => forms.some((form) => isIn(form, range)));
      if (refused) return refused.name;
      return address.family === 6 && !carried && !isIn(address, GLOBAL_IPV6) ? "reserved" : undefined;
    },
  };
}

/** The one spelling of a host: lower case, punycode, without the dot at the end; of an IPv4 address, the usual notation. */
export function hostOf(name: string): string {
  const text = `http://${name}/`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || url.href !== `http://${url.hostname}/`) throw new Error(`${name} is not a host name`);
  return url.hostname.replace(/\.$/, "");
}

function carriedBy(address: Address): Address | undefined {
  const carrier = CARRIERS.find(([range]) => isIn(address, range));
  return carrier && { family: 4, bits: (address.bits >> carrier[1]) & 0xffff_ffffn };
}

function isIn({ family, bits }: Address, range: Range): boolean {
  const shift = BigInt((range.family === 4 ? 32 : 128) - range.prefix);
  return family === range.family && bits >> shift === range.bits >> shift;
}

function rangeOf(cidr: string): Range {
  const [text = "", length, ...rest] = cidr.split("/");
  const address = parseAddress(text);
  const most = address?.family === 4 ? 32 : 128;
  const prefix = length === undefined ? most : Number(length);
  if (!address || rest.length > 0 || length === "" || !Number.isInteger(prefix) || prefix < 0 || prefix > most)
    throw new Error(`${cidr} is not an address or a CIDR`);
  return { ...address, prefix };
}

export function parseAddress(text: string): Address | undefined {
  if (isIPv4(text)) return { family: 4, bits: join(text.split(".").map(Number), 8n) };
  if (!isIPv6(text)) return undefined;
  // The zone, as in fe80::1%eth0, says through which interface, not where to.
  const [address = ""] = text.split("%");
  const [head = [], tail] = address.split("::").map(groupsOf);
  const groups = tail ? [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail] : head;
  return { family: 6, bits: join(groups, 16n) };
}

/** The last 32 bits may be written as an IPv4 address. */
function groupsOf(part: string): number[] {
  const groups = part.split(":").filter(Boolean);
  return groups.flatMap((group) => {
    if (!group.includes(".")) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split(".").map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}

function join(parts: number[], width: bigint): bigint {
  return parts.reduce((bits, part) => (bits << width) | BigInt(part), 0n);
}
