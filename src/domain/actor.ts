// Who does something. Every step that changes what somebody else may rely on takes one: the change is theirs.

/** The request that somebody came with: the address that it came from, and its id. */
export type Origin = { address: string; requestId: string };

/** Whoever came with an API key. */
export type KeyActor = {
  kind: "key";
  keyId: string;
  keyName: string;
  tenant: number;
  tenantName: string;
  scopes: readonly string[];
  /** The session that stood for the key. */
  session?: string;
  from?: Origin;
};

/** A user who came with a subscriber's token, which lets them at their own inbox until it expires. */
export type UserActor = { kind: "user"; tenant: number; userId: string; expiresAtMs: number; from?: Origin };

/** A provider that has signed what it reports. `owner` is the tenant whose own account it is about, 0 for the deployment's. */
export type ProviderActor = { kind: "provider"; provider: string; owner: number };

/** A process of ours, for something that nobody asked for at that moment. */
export type ProcessActor = { kind: "process"; what: string };

/** Somebody at the command line, past the service; `user` is who they are to the operating system. */
export type CommandLineActor = { kind: "command-line"; command: string; user: string };

/** Whoever asks over HTTP: always somebody of one tenant. */
export type Caller = KeyActor | UserActor;

export type Actor = Caller | ProviderActor | ProcessActor | CommandLineActor;
