// The manifests, the image and the compose file fit together and fit the code. Nothing is started and no cluster is asked.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { load, loadAll } from "js-yaml";
import type { Static, TSchema } from "typebox";
import { resolveLocks } from "#config/locks.ts";
import { readConfig, unknownVariables } from "#config/read.ts";
import { ROLES } from "#config/server.ts";
import { createKubernetesLock } from "#guards/lock/kubernetes.ts";
import { operationRoutes } from "#http/routes/operations.ts";
import { createDeliveryMetrics } from "#telemetry/delivery-metrics.ts";
import { createMetrics } from "#telemetry/metrics.ts";
import { startKubernetesStandIn } from "../support/kubernetes-stand-in.ts";
import {
  AUTOSCALER,
  CONFIG_MAP,
  DEPLOYMENT,
  DISRUPTION_BUDGET,
  KUSTOMIZATION,
  misfits,
  ROLE,
  ROLE_BINDING,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
} from "../support/manifest-schemas.ts";
import { until } from "../support/until.ts";

const root = join(import.meta.dirname, "..", "..");
const directory = join(root, "deploy", "kubernetes");
const textOf = (...path: string[]) => readFileSync(join(root, ...path), "utf8");

/** What the command line grants itself after the drain; see src/cli/carillon.ts. */
const FAREWELL_MS = 3_000;
const SCHEMAS: { [kind: string]: TSchema } = {
  ConfigMap: CONFIG_MAP,
  Deployment: DEPLOYMENT,
  HorizontalPodAutoscaler: AUTOSCALER,
  Kustomization: KUSTOMIZATION,
  PodDisruptionBudget: DISRUPTION_BUDGET,
  Role: ROLE,
  RoleBinding: ROLE_BINDING,
  Secret: SECRET,
  Service: SERVICE,
  ServiceAccount: SERVICE_ACCOUNT,
};
type Manifest = { kind: string; metadata?: { name: string } };
const files = readdirSync(directory).sort();
const manifests = files.flatMap((file) =>
  (loadAll(readFileSync(join(directory, file), "utf8")) as Manifest[]).map((manifest) => ({ file, manifest })),
);
/** All of one kind; that they fit the schema is the first test. */
const all = <Schema extends TSchema>(kind: string, _schema: Schema) =>
  manifests.filter(({ manifest }) => manifest.kind === kind).map(({ manifest }) => manifest as Static<Schema>);
function one<Schema extends TSchema>(kind: string, schema: Schema): Static<Schema> {
  const [found, ...more] = all(kind, schema);
  assert.ok(found !== undefined && more.length === 0, `one ${kind}`);
  return found;
}
const deployments = all("Deployment", DEPLOYMENT);
const podOf = ({ spec }: Static<typeof DEPLOYMENT>) => spec.template.spec;
const containerOf = (deployment: Static<typeof DEPLOYMENT>) => {
  const [container] = podOf(deployment).containers;
  assert.ok(container);
  return container;
};
const selects = (selector: { [label: string]: string }, labels: { [label: string]: string }) =>
  Object.entries(selector).every(([label, value]) => labels[label] === value);

test("every manifest has the fields it should and no others", () => {
  for (const { file, manifest } of manifests) {
    const schema = SCHEMAS[manifest.kind];
    assert.ok(schema, `${file} has a ${manifest.kind}`);
    assert.deepEqual(misfits(schema, manifest), [], `${file}, ${manifest.kind} ${manifest.metadata?.name}`);
  }
  assert.equal(manifests.length, 14);
  const broken = structuredClone(deployments[0]) as { spec: { template: { spec: { enableServiceLinks: boolean } } } };
  broken.spec.template.spec.enableServiceLinks = true;
  assert.notDeepEqual(misfits(DEPLOYMENT, broken), [], "the schema refuses something");
});

test("the kustomization lists every file but itself and the example of a secret", () => {
  const { resources } = one("Kustomization", KUSTOMIZATION);
  const expected = files.filter((file) => file !== "kustomization.yaml" && file !== "secret.example.yaml");
  assert.deepEqual([...resources].sort(), expected);
});

test("the roles of all deployments together are all roles, each once", async () => {
  const roles = deployments.flatMap((deployment) => {
    const variable = containerOf(deployment).env.find(({ name }) => name === "CARILLON_ROLES");
    assert.ok(variable && "value" in variable);
    return variable.value.split(",");
  });
  assert.deepEqual(roles.sort(), [...ROLES].sort());
});

test("a deployment, its budget and its spreading select the pods it makes, and only those", () => {
  const budgets = all("PodDisruptionBudget", DISRUPTION_BUDGET);
  for (const deployment of deployments) {
    const { labels } = deployment.spec.template.metadata;
    const { matchLabels } = deployment.spec.selector;
    const chosen = deployments.filter(({ spec }) => selects(matchLabels, spec.template.metadata.labels));
    assert.deepEqual(chosen, [deployment]);
    assert.equal(budgets.filter(({ spec }) => selects(spec.selector.matchLabels, labels)).length, 1);
    for (const { labelSelector } of podOf(deployment).topologySpreadConstraints) {
      assert.deepEqual(labelSelector.matchLabels, matchLabels);
    }
  }
});

test("the service leads to the pods that have the role api, by the name of their port", () => {
  const { selector, ports } = one("Service", SERVICE).spec;
  const behind = deployments.filter(({ spec }) => selects(selector, spec.template.metadata.labels));
  assert.deepEqual(
    behind.map(({ metadata }) => metadata.name),
    ["carillon-api"],
  );
  const [pod] = behind.map(containerOf);
  for (const { targetPort } of ports) assert.ok(pod?.ports.some(({ name }) => name === targetPort));
});

test("whatever is named exists: accounts, roles, settings, volumes, what is scaled", () => {
  const account = one("ServiceAccount", SERVICE_ACCOUNT);
  const binding = one("RoleBinding", ROLE_BINDING);
  assert.equal(binding.roleRef.name, one("Role", ROLE).metadata.name);
  assert.deepEqual(
    binding.subjects.map(({ name }) => name),
    [account.metadata.name],
  );
  const settings = new Set([one("ConfigMap", CONFIG_MAP).metadata.name, one("Secret", SECRET).metadata.name]);
  for (const deployment of deployments) {
    assert.equal(podOf(deployment).serviceAccountName, account.metadata.name);
    for (const from of containerOf(deployment).envFrom) {
      assert.ok(settings.has("configMapRef" in from ? from.configMapRef.name : from.secretRef.name));
    }
    assert.deepEqual(
      containerOf(deployment).volumeMounts.map(({ name }) => name),
      podOf(deployment).volumes.map(({ name }) => name),
    );
  }
  const scaled = one("HorizontalPodAutoscaler", AUTOSCALER).spec.scaleTargetRef.name;
  const target = deployments.find(({ metadata }) => metadata.name === scaled);
  assert.ok(target && target.spec.replicas === undefined, "who scales says how many");
});

test("a pod's environment is a valid configuration without unknown variables, with locks and without", async () => {
  const { data } = one("ConfigMap", CONFIG_MAP);
  const { stringData } = one("Secret", SECRET);
  for (const deployment of deployments) {
    const container = containerOf(deployment);
    const own = Object.fromEntries(
      container.env.map((variable) =>
        ["value" in variable ? [variable.name, variable.value] : [variable.name, "x"]].flat(),
      ),
    );
    const env: { [name: string]: string } = { ...data, ...stringData, ...own };
    const config = await readConfig({ env, cwd: directory });
    assert.equal(config.host, "0.0.0.0");
    assert.deepEqual(
      container.ports.map(({ containerPort }) => containerPort),
      [config.port],
    );
    assert.equal(deployment.spec.template.metadata.annotations["prometheus.io/port"], String(config.port));
    assert.ok(container.volumeMounts.some(({ mountPath }) => mountPath === config.home));
    assert.deepEqual(unknownVariables(env), []);
    assert.deepEqual(resolveLocks(undefined, undefined, env), { locks: { kind: "off" }, faults: [] });
    const on = { ...env, USE_DISTRIBUTED_LOCKING: "true", KUBERNETES_SERVICE_HOST: "10.0.0.1" };
    assert.deepEqual(resolveLocks(undefined, undefined, on).faults, []);
    const fields = container.env.flatMap((one) =>
      "valueFrom" in one ? [[one.name, one.valueFrom.fieldRef.fieldPath]] : [],
    );
    assert.deepEqual(fields, [
      ["POD_NAME", "metadata.name"],
      ["POD_NAMESPACE", "metadata.namespace"],
    ]);
  }
});

test("the grace period has room for the preStop, the drain and the goodbye", () => {
  const drainMs = Number(one("ConfigMap", CONFIG_MAP).data.CARILLON_DRAIN_MS);
  for (const deployment of deployments) {
    const [program, seconds = "0"] = containerOf(deployment).lifecycle?.preStop.exec.command ?? ["sleep"];
    assert.equal(program, "sleep");
    const neededMs = Number(seconds) * 1000 + drainMs + FAREWELL_MS;
    const graceMs = podOf(deployment).terminationGracePeriodSeconds * 1000;
    assert.ok(
      graceMs > neededMs && graceMs < neededMs + 10_000,
      `${deployment.metadata.name}: ${graceMs}, ${neededMs}`,
    );
  }
  assert.match(textOf("src", "cli", "stopping.ts"), /FAREWELL_MS = 3_000/);
});

test("the probes ask routes that are there", () => {
  const routes = operationRoutes({
    health: { all: async () => [], whyNotReady: async () => undefined },
    figures: async () => "",
    isStopping: () => false,
    uptimeSeconds: () => 0,
  });
  const paths = new Set(routes.map(({ path }) => path));
  for (const deployment of deployments) {
    const { startupProbe, livenessProbe, readinessProbe } = containerOf(deployment);
    for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) assert.ok(paths.has(httpGet.path));
    // A database that is away makes a pod unready; to restart it would not help.
    assert.equal(livenessProbe.httpGet.path, "/live");
    assert.equal(readinessProbe.httpGet.path, "/ready");
    assert.ok(paths.has(deployment.spec.template.metadata.annotations["prometheus.io/path"] ?? ""));
  }
});

test("the autoscaler goes by a metric that there is", async () => {
  const { registry } = createMetrics();
  createDeliveryMetrics(registry).watchQueue(
    async () => ({
      depth: {},
      oldestAgeMs: 0,
      workers: 0,
      untaken: [],
      paused: { lane: 0, channel: 0, tenant: 0, provider: 0 },
    }),
    () => undefined,
  );
  for (const { external } of one("HorizontalPodAutoscaler", AUTOSCALER).spec.metrics) {
    assert.ok(registry.getSingleMetric(external.metric.name), external.metric.name);
  }
});

test("the role allows what locks do to Leases, and nothing more", async () => {
  const server = await startKubernetesStandIn();
  let now = 0;
  const clocks = { monotonic: () => now, wallClock: Date.now };
  const at = { kubeconfig: server.kubeconfig, namespace: "carillon", lookMs: 5, ...clocks };
  const [ann, bob] = [
    createKubernetesLock({ ...at, identity: "ann" }),
    createKubernetesLock({ ...at, identity: "bob" }),
  ];
  await ann.acquire("k", 1_000);
  await bob.acquire("k", 1_000);
  now += 1_000;
  const hold = await bob.acquire("k", 1_000);
  assert.ok(hold.kind === "acquired");
  await bob.renew(hold, 1_000);
  await bob.release(hold);
  await until(async () => (server.asked.some(({ selector }) => selector) ? true : undefined));
  const verbs: { [method: string]: string } = { GET: "get", POST: "create", PUT: "update", DELETE: "delete" };
  const used = new Set(server.asked.map(({ method, selector }) => (selector ? "list" : verbs[method])));
  await Promise.all([ann.close(), bob.close()]);
  await server.close();

  const { rules } = one("Role", ROLE);
  assert.deepEqual(rules, [
    { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "list", "create", "update", "delete"] },
  ]);
  assert.deepEqual([...used].sort(), [...(rules[0]?.verbs ?? [])].sort());
  const withToken = deployments.filter((deployment) => podOf(deployment).automountServiceAccountToken);
  assert.deepEqual(
    withToken.map(({ metadata }) => metadata.name),
    ["carillon-worker"],
    "only who delivers may lock",
  );
});

const { version } = JSON.parse(textOf("package.json")) as { version: string };

test("the image is the one that is built: this version, no root, the service as its command", () => {
  for (const deployment of deployments) assert.equal(containerOf(deployment).image, `carillon:${version}`);
  const stages = textOf("Dockerfile").split(/^(?=FROM )/m);
  const last = stages.at(-1) ?? "";
  const [, user] = /^USER (\d+):\d+$/m.exec(last) ?? [];
  assert.ok(Number(user) > 0);
  for (const deployment of deployments) assert.equal(podOf(deployment).securityContext.runAsUser, Number(user));
  assert.match(last, /^CMD \["node", "dist\/cli\/carillon.js", "start"\]$/m);
  assert.match(textOf("Dockerfile"), /npm ci --omit=dev --omit=optional/);
  // What only some need is there for all who have no other way to install it.
  const { devDependencies, peerDependencies } = JSON.parse(textOf("package.json"));
  for (const name of Object.keys(peerDependencies))
    assert.ok(textOf("Dockerfile").includes(` ${name}@${devDependencies[name]}`), name);
});

test("what the image copies is there and is not ignored", () => {
  const kept = new Set(textOf(".dockerignore").match(/(?<=^!).+$/gm));
  assert.match(textOf(".dockerignore"), /^\*$/m);
  const copied = [...textOf("Dockerfile").matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, from = ""]) =>
    from.split(" "),
  );
  assert.deepEqual([...new Set(copied)].sort(), [...kept].sort());
  for (const path of copied) assert.ok(existsSync(join(root, path)), path);
  for (const built of ["src", "web"]) assert.ok(copied.includes(built), `the build needs ${built}`);
});

test("the compose file runs two replicas on one PostgreSQL, read-only, with time to drain", async () => {
  type Compose = {
    services: {
      postgres: { environment: { [name: string]: string } };
      carillon: {
        image: string;
        deploy: { replicas: number };
        environment: { [name: string]: string };
        read_only: boolean;
        stop_grace_period: string;
        healthcheck: { test: string[] };
      };
    };
  };
  const { postgres, carillon } = (load(textOf("compose.yaml")) as Compose).services;
  assert.equal(carillon.image, `carillon:${version}`);
  assert.equal(carillon.deploy.replicas, 2);
  assert.equal(carillon.read_only, true);
  const env = Object.fromEntries(
    Object.entries(carillon.environment).map(([name, value]) => [
      name,
      value.replace(/\$\{\w+:-(\w+)\}/g, "$1").replace(/\$\{\w+:\?[^}]+\}/g, "given-by-you"),
    ]),
  );
  const { databaseUrl = "", drainMs } = await readConfig({ env, cwd: directory });
  const { hostname, username, pathname } = new URL(databaseUrl);
  assert.equal(hostname, "postgres");
  assert.equal(username, postgres.environment.POSTGRES_USER);
  assert.equal(pathname, `/${postgres.environment.POSTGRES_DB}`);
  assert.ok(Number.parseInt(carillon.stop_grace_period, 10) * 1000 > drainMs + FAREWELL_MS);
  assert.match(carillon.healthcheck.test.at(-1) ?? "", /:8420\/ready$/);
});
