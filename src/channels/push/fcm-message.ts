// How a request becomes an FCM message, and what FCM would not take.

import type { Device } from "#channels/channel.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";

export const MAX_BYTES = 4096;
/** The longest FCM keeps a message. */
const MAX_TTL_SECONDS = 2_419_200;

export function messageOf(
  { content, priority, expiresAt }: NotificationRequest,
  { token, platform }: Device,
  now: number,
) {
  const { title, body, imageUrl: image, sound, badge, icon, clickAction } = content;
  const isAlert = title !== undefined || body !== undefined;
  const isUrgent = priority === "urgent" || priority === "high";
  const ttl = expiresAt && Math.min(MAX_TTL_SECONDS, Math.max(0, Math.floor((Date.parse(expiresAt) - now) / 1000)));
  // Only the part for this device's platform: all three would take from the same 4 KB.
  const platforms = {
    android: () => ({
      android: {
        priority: isUrgent ? "HIGH" : "NORMAL",
        ...(ttl !== undefined && { ttl: `${ttl}s` }),
        ...(isAlert && { notification: { icon, sound, click_action: clickAction, notification_count: badge } }),
      },
    }),
    ios: () => ({
      apns: {
        headers: {
          // Apple takes background messages at 5 only.
          "apns-priority": isAlert && priority !== "low" ? "10" : "5",
          ...(expiresAt && { "apns-expiration": String(Math.floor(Date.parse(expiresAt) / 1000)) }),
        },
        payload: {
          aps: {
            sound,
            badge,
            category: clickAction,
            ...(image && { "mutable-content": 1 }),
            ...(!isAlert && { "content-available": 1 }),
          },
        },
        ...(image && { fcm_options: { image } }),
      },
    }),
    web: () => ({
      webpush: {
        headers: { Urgency: isUrgent ? "high" : "normal", ...(ttl !== undefined && { TTL: String(ttl) }) },
        ...(isAlert && { notification: { icon } }),
        // FCM takes no other links than these.
        ...(clickAction?.startsWith("https://") && { fcm_options: { link: clickAction } }),
      },
    }),
  };
  return {
    token,
    ...(isAlert && { notification: { title, body, image } }),
    ...(content.data && { data: stringsOf(content.data) }),
    ...platforms[platform](),
  };
}

/** FCM takes strings only; everything else goes as JSON. */
function stringsOf(data: { [name: string]: unknown }): { [name: string]: string } {
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
}

/** FCM counts names and values. What it counts besides it tells itself, as INVALID_ARGUMENT. */
export function validate({ content }: NotificationRequest): Fault[] {
  const { title, body, imageUrl, data = {} } = content;
  const counted = [title, body, imageUrl, ...Object.entries(stringsOf(data)).flat()];
  const bytes = counted.reduce((sum, text) => sum + Buffer.byteLength(text ?? ""), 0);
  const faults = Object.keys(data)
    .filter((name) => /^(from$|message_type$|google\.|gcm\.)/.test(name))
    .map((name) => ({
      path: `/content/data/${name}`,
      message: "must have another name: FCM keeps this one for itself",
    }));
  if (bytes > MAX_BYTES) {
    faults.push({ path: "/content", message: `must have at most ${MAX_BYTES} bytes for push, and has ${bytes}` });
  }
  return faults;
}
