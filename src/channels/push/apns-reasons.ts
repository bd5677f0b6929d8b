// Every reason APNs documents, and what it means for a message.

import { AWAY, BAD_CONTENT, BAD_CREDENTIALS, BROKE, DEAD, LIMITED, type Verdict } from "#wire/verdict.ts";

export const APNS_VERDICTS: { readonly [reason: string]: Verdict } = {
  // 400
  BadCollapseId: BAD_CONTENT,
  // Also what a token of the other environment gets: to this provider it is dead all the same.
  BadDeviceToken: DEAD,
  BadExpirationDate: BAD_CONTENT,
  BadMessageId: BAD_CONTENT,
  BadPriority: BAD_CONTENT,
  BadTopic: BAD_CREDENTIALS,
  DeviceTokenNotForTopic: DEAD,
  DuplicateHeaders: BAD_CONTENT,
  IdleTimeout: AWAY,
  InvalidPushType: BAD_CONTENT,
  MissingDeviceToken: BAD_CONTENT,
  MissingTopic: BAD_CREDENTIALS,
  PayloadEmpty: BAD_CONTENT,
  TopicDisallowed: BAD_CREDENTIALS,
  // 403
  BadCertificate: BAD_CREDENTIALS,
  BadCertificateEnvironment: BAD_CREDENTIALS,
  ExpiredProviderToken: BAD_CREDENTIALS,
  Forbidden: BAD_CREDENTIALS,
  InvalidProviderToken: BAD_CREDENTIALS,
  MissingProviderToken: BAD_CREDENTIALS,
  UnrelatedKeyIdInToken: BAD_CREDENTIALS,
  BadEnvironmentKeyIdInToken: BAD_CREDENTIALS,
  // How the line above is spelt on the wire.
  BadEnvironmentKeyInToken: BAD_CREDENTIALS,
  // 404, 405
  BadPath: BAD_CONTENT,
  MethodNotAllowed: BAD_CONTENT,
  // 410
  ExpiredToken: DEAD,
  Unregistered: DEAD,
  // 413
  PayloadTooLarge: BAD_CONTENT,
  // 429
  TooManyProviderTokenUpdates: LIMITED,
  TooManyRequests: LIMITED,
  // 500, 503
  InternalServerError: BROKE,
  ServiceUnavailable: AWAY,
  Shutdown: AWAY,
};
