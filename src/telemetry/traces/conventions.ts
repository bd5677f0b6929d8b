// What spans and their attributes are called: OpenTelemetry's semantic conventions, pinned. Those of messaging are still in development and
// change from version to version; whoever reads the traces is told by the schema's URL which one these are of.

export const SCHEMA_URL = "https://opentelemetry.io/schemas/1.45.0";

export const SYSTEM = "messaging.system.name";
export const OPERATION = "messaging.operation.name";
export const OPERATION_TYPE = "messaging.operation.type";
/** The channel: of few values, as names of spans have it too. */
export const DESTINATION = "messaging.destination.name";
export const MESSAGE_ID = "messaging.message.id";
/** Of a callback: the notification that it is about. */
export const CONVERSATION_ID = "messaging.message.conversation_id";
export const BATCH_COUNT = "messaging.batch.message_count";
export const ERROR_TYPE = "error.type";

/** Ours, where the conventions have no word. */
export const TENANT = "carillon.tenant";
export const PRIORITY = "carillon.priority";
export const ATTEMPT = "carillon.attempt";
export const PROVIDER = "carillon.provider";
export const OUTCOME = "carillon.outcome";
export const STATUS = "carillon.status";
/** Of a callback: what it tells, and whom. */
export const EVENT = "carillon.event";
export const ENDPOINT = "carillon.endpoint";

/** Of those of our steps that the conventions know by another word. */
export const TYPES: { readonly [step: string]: string } = {
  accept: "create",
  claim: "receive",
  deliver: "process",
  callback: "process",
  send: "send",
  settle: "settle",
};
