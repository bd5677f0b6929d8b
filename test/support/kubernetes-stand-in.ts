// Stands in for a Kubernetes API server, as far as Leases go: versions, conflicts, preconditions and the answers of the
// real one (as of 1.34) in status and reason, over TLS and HTTP/2 as the real one. Namespaces must exist. It can be told to
// fail, to be slow, and to go away.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { CERTIFICATE, PRIVATE_KEY } from "./certificate.ts";
import { listening } from "./listening.ts";
import { textOf } from "./scripted.ts";

type Metadata = {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  labels?: { [name: string]: string };
  creationTimestamp?: string;
  managedFields?: object[];
};
type Spec = {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  leaseTransitions?: number;
  acquireTime?: string;
  renewTime?: string;
};
export type StoredLease = { metadata: Metadata; spec?: Spec };
export type Asked = {
  method: string;
  namespace: string;
  name: string | undefined;
  /** Of a list. */
  selector: string;
  token: string | undefined;
  httpVersion: string;
};
type Answer = { status: number; body: object };
/** What it does instead of answering as it should; undefined for nothing. */
export type Trouble = (asked: Asked) => { status: number } | "hang" | "reset" | "obey-then-hang" | undefined;

export type KubernetesStandIn = {
  /** The file that leads here. */
  kubeconfig: string;
  asked: Asked[];
  leases(namespace: string): StoredLease[];
  /** As if somebody had used kubectl. */
  edit(namespace: string, name: string, change: (lease: StoredLease) => void): void;
  trouble(next: Trouble | undefined): void;
  connections(): number;
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
  close(): Promise<void>;
};

const PATH = /^\/apis\/coordination\.k8s\.io\/v1\/namespaces\/([^/?]+)\/leases(?:\/([^/?]+))?$/;
const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

export async function startKubernetesStandIn(namespaces = ["carillon"]): Promise<KubernetesStandIn> {
  const directory = mkdtempSync(join(tmpdir(), "carillon-kubernetes-"));
  const kubeconfig = join(directory, "config");
  const store = new Map<string, StoredLease>();
  const asked: Asked[] = [];
  let revision = 1000;
  let trouble: Trouble | undefined;

  async function handle(
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ): Promise<void> {
    const text = await textOf(request);
    const [path = "", query] = (request.url ?? "").split("?");
    const [, namespace = "", name] = PATH.exec(path) ?? [];
    const token = request.headers.authorization?.replace(/^Bearer /, "");
    const { method = "", httpVersion } = request;
    const selector = new URLSearchParams(query).get("labelSelector") ?? "";
    const one: Asked = { method, namespace, name, selector, token, httpVersion };
    asked.push(one);
    const planned = trouble?.(one);
    if (planned === "hang") return;
    if (planned === "reset") {
      for (const socket of kept.sockets.keys()) socket.resetAndDestroy();
      return;
    }
    if (planned === "obey-then-hang") return void obey(one, text);
    const { status, body } = planned === undefined ? obey(one, text) : refuse(planned.status, "Trouble", "as told");
    response.statusCode = status;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(body));
  }

  function obey({ method, namespace, name, selector }: Asked, text: string): Answer {
    if (!namespace) return refuse(404, "NotFound", "the server could not find the requested resource");
    const body: unknown = text ? JSON.parse(text) : undefined;
    if (method === "POST" && name === undefined) return create(namespace, body as StoredLease);
    if (method === "GET" && name === undefined) return list(namespace, selector);
    const lease = store.get(`${namespace}/${name}`);
    if (!lease) return refuse(404, "NotFound", `leases.coordination.k8s.io "${name}" not found`);
    switch (method) {
      case "GET":
        return { status: 200, body: shown(lease) };
      case "PUT":
        return replace(lease, body as StoredLease);
      case "DELETE":
        return remove(lease, (body as { preconditions?: Partial<Metadata> } | undefined)?.preconditions ?? {});
      default:
        return refuse(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
    }
  }

  function create(namespace: string, lease: StoredLease): Answer {
    if (!namespaces.includes(namespace)) return refuse(404, "NotFound", `namespaces "${namespace}" not found`);
    const invalid = faultOf(lease);
    if (invalid) return refuse(422, "Invalid", invalid);
    const key = `${namespace}/${lease.metadata.name}`;
    if (store.has(key)) return refuse(409, "AlreadyExists", `leases "${lease.metadata.name}" already exists`);
    const creationTimestamp = new Date().toISOString().replace(/\.\d+/, "");
    const metadata = {
      ...lease.metadata,
      namespace,
      uid: randomUUID(),
      resourceVersion: String(++revision),
      creationTimestamp,
      managedFields: managedFields(creationTimestamp),
    };
    const stored = { metadata, ...(lease.spec && { spec: lease.spec }) };
    store.set(key, stored);
    return { status: 201, body: shown(stored) };
  }

  function list(namespace: string, selector: string): Answer {
    const wanted = selector.split(",").map((pair) => pair.split("="));
    const items = [...store.values()].filter(
      ({ metadata }) =>
        metadata.namespace === namespace && wanted.every(([name = "", value]) => metadata.labels?.[name] === value),
    );
    const metadata = { resourceVersion: String(revision) };
    return { status: 200, body: { kind: "LeaseList", apiVersion: "coordination.k8s.io/v1", metadata, items } };
  }

  function replace(old: StoredLease, lease: StoredLease): Answer {
    const invalid = faultOf(lease);
    if (invalid) return refuse(422, "Invalid", invalid);
    const { uid, resourceVersion, creationTimestamp = "", managedFields: fields = [], ...rest } = lease.metadata;
    // The real one takes back what it gave, in whatever notation of time, and nothing else.
    const isSame = Date.parse(creationTimestamp) === Date.parse(old.metadata.creationTimestamp ?? "");
    if (!isSame || !isDeepStrictEqual(withoutTimes(fields), withoutTimes(old.metadata.managedFields ?? []))) {
      return refuse(422, "Invalid", "metadata: field is immutable");
    }
    if (conflicts(old, { uid, resourceVersion })) return refuse(409, "Conflict", "the object has been modified");
    const metadata = { ...old.metadata, ...rest, resourceVersion: String(++revision) };
    const stored = { metadata, ...(lease.spec && { spec: lease.spec }) };
    store.set(`${metadata.namespace}/${metadata.name}`, stored);
    return { status: 200, body: shown(stored) };
  }

  function remove(old: StoredLease, preconditions: Conditions): Answer {
    if (conflicts(old, preconditions)) return refuse(409, "Conflict", "Precondition failed");
    revision++;
    store.delete(`${old.metadata.namespace}/${old.metadata.name}`);
    return { status: 200, body: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" } };
  }

  const tls = { key: PRIVATE_KEY, cert: CERTIFICATE, allowHTTP1: true };
  const server = createSecureServer(tls, (request, response) => {
    // The client went away before its request was complete.
    handle(request, response).catch(() => undefined);
  });
  const kept = await listening(server);
  writeFileSync(kubeconfig, JSON.stringify(kubeconfigFor(`https://127.0.0.1:${kept.port}`)));

  return {
    kubeconfig,
    asked,
    leases: (namespace) => [...store.values()].filter(({ metadata }) => metadata.namespace === namespace),
    edit(namespace, name, change) {
      const lease = store.get(`${namespace}/${name}`);
      if (!lease) throw new Error(`there is no lease ${name}`);
      change(lease);
      lease.metadata.resourceVersion = String(++revision);
    },
    trouble(next) {
      trouble = next;
    },
    connections: () => kept.connections().ever,
    goAway: kept.down,
    comeBack: kept.up,
    async close() {
      await kept.down();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

const managedFields = (time: string) => [
  {
    manager: "node",
    operation: "Update",
    apiVersion: "coordination.k8s.io/v1",
    time,
    fieldsType: "FieldsV1",
    fieldsV1: { "f:spec": { "f:holderIdentity": {}, "f:renewTime": {} } },
  },
];
const withoutTimes = (fields: object[]) => fields.map((field) => ({ ...field, time: undefined }));

type Conditions = { uid?: string | undefined; resourceVersion?: string | undefined };

const conflicts = ({ metadata }: StoredLease, { uid, resourceVersion }: Conditions): boolean =>
  (uid !== undefined && uid !== metadata.uid) ||
  (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion);

/** What the real one refuses of a Lease. */
function faultOf({ metadata, spec = {} }: StoredLease): string | undefined {
  if (!LABEL.test(metadata?.name ?? "")) return "metadata.name: Invalid value";
  const { leaseDurationSeconds = 1, leaseTransitions = 0, acquireTime, renewTime } = spec;
  if (!Number.isInteger(leaseDurationSeconds) || leaseDurationSeconds < 1)
    return "spec.leaseDurationSeconds: too small";
  if (!Number.isInteger(leaseTransitions) || leaseTransitions < 0) return "spec.leaseTransitions: must not be negative";
  for (const time of [acquireTime, renewTime]) {
    if (time !== undefined && !MICRO_TIME.test(time)) return "a time that cannot be read";
  }
  return undefined;
}

const shown = (lease: StoredLease) => ({ kind: "Lease", apiVersion: "coordination.k8s.io/v1", ...lease });

const refuse = (status: number, reason: string, message: string): Answer => ({
  status,
  body: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code: status },
});

/** YAML is a superset of JSON. */
const kubeconfigFor = (server: string) => ({
  apiVersion: "v1",
  kind: "Config",
  clusters: [{ name: "stand-in", cluster: { server, "certificate-authority-data": btoa(CERTIFICATE) } }],
  users: [{ name: "pod", user: { token: "a-service-account-token" } }],
  contexts: [{ name: "stand-in", context: { cluster: "stand-in", user: "pod" } }],
  "current-context": "stand-in",
});
