// Where a push goes.

/** `subscription` is what a browser's PushManager gave, for the platform web. */
export type Device = {
  token: string;
  platform: "ios" | "android" | "web";
  subscription?: { endpoint: string; keys: { p256dh: string; auth: string } };
};
