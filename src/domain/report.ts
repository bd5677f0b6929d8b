// What a provider says later.

import { cut, storable } from "./text.ts";

/** What a provider tells later about a message it accepted. */
export type Report = {
  /** The receipt of the send it belongs to. */
  receipt: string;
  /** Unique among the provider's reports: the same one may come twice. */
  reportId: string;
  kind: "delivered" | "failed";
  at: Date;
  /** Whom it is about, where it is known: of a mail with copies each recipient is reported. */
  address?: string;
  /** A hard bounce or a complaint: nothing more may go to this address. */
  suppress?: { address: string; why: "bounce" | "complaint" };
  reason?: string;
  code?: string;
};

const MOST_NAME = 512;
const MOST_ADDRESS = 320;
const MOST_REASON = 1000;
const MOST_CODE = 100;
/** What PostgreSQL and ISO 8601 both write with four digits. */
const LAST_MS = Date.UTC(9999, 11, 31);

const isAddress = (text: string | undefined) =>
  text !== undefined && text.length <= MOST_ADDRESS && text === storable(text);

/** Signed or not, its words are somebody else's. Without what cannot be stored; undefined when nothing useful would be left. */
export function storableReport({ address, suppress, reason, code, ...rest }: Report): Report | undefined {
  const { receipt, reportId, at } = rest;
  const isName = (text: string) => text.length <= MOST_NAME && text === storable(text);
  if (!isName(receipt) || !isName(reportId) || !(at.getTime() >= 0 && at.getTime() <= LAST_MS)) return undefined;
  return {
    ...rest,
    ...(isAddress(address) && { address }),
    ...(isAddress(suppress?.address) && { suppress }),
    ...(reason !== undefined && { reason: storable(cut(reason, MOST_REASON)) }),
    ...(code !== undefined && { code: storable(cut(code, MOST_CODE)) }),
  };
}
