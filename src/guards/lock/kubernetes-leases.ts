// Leases of a Kubernetes API server: four calls whose failures are values, translated here and nowhere else.
//
// The client library takes 0.4 s and 90 MB to load, so it is loaded by the first call: who does not use it does not pay.
// It also makes a new connection pool for every request, which over TLS is a handshake for every request; here one
// pool serves all, replaced now and then so that renewed certificates are taken up.

import type { CoordinationV1Api, RequestContext, V1Lease } from "@kubernetes/client-node";
import type { Unavailable } from "./lock.ts";

export type LeasesOptions = {
  namespace: string;
  /** A kubeconfig file. Without it: KUBECONFIG, then ~/.kube/config, then the pod's service account. */
  kubeconfig?: string | undefined;
  /** For each request. */
  timeoutMs: number;
  monotonic: () => number;
};

/** What we look at of a Lease, and all the rest, which is kept. */
export type Lease = {
  name: string;
  uid: string;
  version: string;
  /** Empty when nobody holds it. */
  holder: string;
  durationSeconds: number;
  transitions: number;
  /** As it was written. Whether it changed is all that matters. */
  renewTime: string;
  whole: V1Lease;
};
export type LeaseSpec = {
  holder: string;
  durationSeconds: number;
  transitions: number;
  /** Milliseconds of the wall clock, for people to read. Without it the one before is kept. */
  acquiredAt?: number;
  renewedAt: number;
};
export type Leased = { kind: "ok"; lease: Lease };
/** Somebody else was there before: a lease of that name, or a newer version of it. */
type Conflict = { kind: "conflict" };
type Missing = { kind: "missing" };

export type Leases = {
  create(name: string, spec: LeaseSpec): Promise<Leased | Conflict | Unavailable>;
  read(name: string): Promise<Leased | Missing | Unavailable>;
  /** All of ours, as of a moment ago. */
  list(): Promise<{ kind: "ok"; leases: Lease[]; version: number } | Unavailable>;
  /** Only if it is still the version given. */
  replace(lease: Lease, spec: LeaseSpec): Promise<Leased | Conflict | Missing | Unavailable>;
  /** Only if it is still the version given. */
  remove(lease: Lease): Promise<{ kind: "removed" } | Conflict | Missing | Unavailable>;
  close(): Promise<void>;
};

type Client = { api: CoordinationV1Api; library: typeof import("@kubernetes/client-node") };
type Dispatcher = NonNullable<ReturnType<RequestContext["getDispatcher"]>>;

const POOL_MS = 600_000;
const LABELS = { "app.kubernetes.io/managed-by": "carillon" };

export function openLeases({ namespace, kubeconfig, timeoutMs, monotonic }: LeasesOptions): Leases {
  let loading: Promise<Client> | undefined;
  let pool: { dispatcher: Dispatcher; madeAt: number } | undefined;

  async function load(): Promise<Client> {
    const library = await import("@kubernetes/client-node");
    const config = new library.KubeConfig();
    if (kubeconfig === undefined) config.loadFromDefault();
    else config.loadFromFile(kubeconfig);
    return { api: config.makeApiClient(library.CoordinationV1Api), library };
  }

  function share(context: RequestContext): void {
    const own = context.getDispatcher();
    if (!own) return;
    if (pool && monotonic() - pool.madeAt < POOL_MS) {
      context.setDispatcher(pool.dispatcher);
      return;
    }
    // What is under way on the old one ends as usual.
    pool?.dispatcher.close().catch(() => undefined);
    // Over HTTP/1.1 it would give a connection up after every DELETE with a body, as some servers cannot read these.
    const dispatcher = own.compose((dispatch) => (options, handler) => dispatch({ ...options, reset: false }, handler));
    pool = { dispatcher, madeAt: monotonic() };
    context.setDispatcher(dispatcher);
  }

  async function ask<Value>(
    call: (client: Client, options: Parameters<CoordinationV1Api["readNamespacedLease"]>[1]) => Promise<Value>,
  ): Promise<{ kind: "ok"; value: Value } | Conflict | Missing | Unavailable> {
    try {
      // A file that could not be read may be there the next time.
      loading ??= load().catch((error: unknown) => {
        loading = undefined;
        throw error;
      });
      const client = await loading;
      const signal = AbortSignal.timeout(timeoutMs);
      const prepare = (context: RequestContext) => {
        context.setSignal(signal);
        share(context);
        return context;
      };
      const middleware = [middlewareOf(client, prepare)];
      return { kind: "ok", value: await call(client, { middleware, middlewareMergeStrategy: "append" }) };
    } catch (error) {
      return refusalOf(error);
    }
  }

  return {
    async create(name, spec) {
      const created = await ask((client, options) => {
        const body = { metadata: { name, namespace, labels: LABELS }, spec: specOf(client, spec) };
        return client.api.createNamespacedLease({ namespace, body }, options);
      });
      if (created.kind === "missing") return { kind: "unavailable", reason: "failed", detail: "no such namespace" };
      return created.kind === "ok" ? { kind: "ok", lease: leaseFrom(created.value) } : created;
    },
    async read(name) {
      const found = await ask(({ api }, options) => api.readNamespacedLease({ name, namespace }, options));
      if (found.kind === "conflict") return { kind: "unavailable", reason: "failed", detail: "409" };
      return found.kind === "ok" ? { kind: "ok", lease: leaseFrom(found.value) } : found;
    },
    async list() {
      const labelSelector = Object.entries(LABELS)
        .map((pair) => pair.join("="))
        .join(",");
      // Any version will do: the API server answers from its cache.
      const asked = { namespace, labelSelector, resourceVersion: "0" };
      const found = await ask(async ({ api }, options) => {
        const { items, metadata } = await api.listNamespacedLease(asked, options);
        return { leases: items.map(leaseFrom), version: Number(metadata?.resourceVersion) };
      });
      if (found.kind === "ok") return { kind: "ok", ...found.value };
      return found.kind === "unavailable" ? found : { kind: "unavailable", reason: "failed", detail: found.kind };
    },
    async replace({ name, whole }, spec) {
      // The version in the metadata is the condition.
      const replaced = await ask((client, options) => {
        const body = { ...whole, spec: { ...whole.spec, ...specOf(client, spec) } };
        return client.api.replaceNamespacedLease({ name, namespace, body }, options);
      });
      return replaced.kind === "ok" ? { kind: "ok", lease: leaseFrom(replaced.value) } : replaced;
    },
    async remove({ name, uid, version }) {
      const body = { preconditions: { uid, resourceVersion: version } };
      const removed = await ask(({ api }, options) => api.deleteNamespacedLease({ name, namespace, body }, options));
      return removed.kind === "ok" ? { kind: "removed" } : removed;
    },
    async close() {
      // Who closes has waited for what it wanted to wait for.
      await pool?.dispatcher.destroy();
    },
  };
}

const specOf = (
  { library: { V1MicroTime } }: Client,
  { holder, durationSeconds, transitions, acquiredAt, renewedAt }: LeaseSpec,
) => ({
  holderIdentity: holder,
  leaseDurationSeconds: durationSeconds,
  leaseTransitions: transitions,
  renewTime: new V1MicroTime(renewedAt),
  ...(acquiredAt !== undefined && { acquireTime: new V1MicroTime(acquiredAt) }),
});

const leaseFrom = (whole: V1Lease): Lease => ({
  name: whole.metadata?.name ?? "",
  uid: whole.metadata?.uid ?? "",
  version: whole.metadata?.resourceVersion ?? "",
  holder: whole.spec?.holderIdentity ?? "",
  durationSeconds: whole.spec?.leaseDurationSeconds ?? 0,
  transitions: whole.spec?.leaseTransitions ?? 0,
  // The library calls it a date and leaves it a string.
  renewTime: String(whole.spec?.renewTime ?? ""),
  whole,
});

/** The library's own type for this is an observable, of which it exports one way to make. */
function middlewareOf({ library }: Client, prepare: (context: RequestContext) => RequestContext) {
  const plain = library.setHeaderMiddleware("accept", "application/json");
  return { ...plain, pre: (context: RequestContext) => plain.pre(prepare(context)) };
}

/** Nothing of the message is passed on: the library writes headers and bodies into it. */
function refusalOf(error: unknown): Conflict | Missing | Unavailable {
  if (!(error instanceof Error)) return { kind: "unavailable", reason: "failed" };
  // Before the code: these have one of their own kind.
  if (error.name === "TimeoutError" || error.name === "AbortError") return { kind: "unavailable", reason: "timeout" };
  const code = "code" in error ? error.code : undefined;
  if (typeof code === "number") {
    switch (code) {
      case 404:
        return { kind: "missing" };
      case 409:
      case 410: // The version we named is too old to be known.
        return { kind: "conflict" };
      case 401:
      case 403:
        return { kind: "unavailable", reason: "forbidden", detail: String(code) };
      case 429:
      case 503:
        return { kind: "unavailable", reason: "overloaded", detail: String(code) };
      default:
        return { kind: "unavailable", reason: "failed", detail: String(code) };
    }
  }
  const cause = error.cause instanceof Error && "code" in error.cause ? error.cause.code : code;
  const detail = typeof cause === "string" ? { detail: cause } : {};
  if (error instanceof TypeError && error.message === "fetch failed") {
    return { kind: "unavailable", reason: "unreachable", ...detail };
  }
  return { kind: "unavailable", reason: "failed", detail: detail.detail ?? error.name };
}
