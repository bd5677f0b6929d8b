// The fields of Kubernetes objects that the manifests use, and no others: a misspelt field is a fault here, where the API
// server would only warn.

import { Ajv2020 } from "ajv/dist/2020.js";
import { type TProperties, type TSchema, Type } from "typebox";

const object = <Fields extends TProperties>(fields: Fields) => Type.Object(fields, { additionalProperties: false });
const words = Type.Record(Type.String(), Type.String());
const name = Type.String({ pattern: "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" });
const count = Type.Integer({ minimum: 1 });
const exactly = <const Value extends string | boolean>(value: Value) => Type.Literal(value);

const metadata = object({ name, labels: Type.Optional(words) });
const selector = object({ matchLabels: words });
const kind = <Fields extends TProperties>(apiVersion: string, kindName: string, fields: Fields) =>
  object({ apiVersion: Type.Literal(apiVersion), kind: Type.Literal(kindName), metadata, ...fields });

const probe = object({
  httpGet: object({ path: Type.String(), port: exactly("http") }),
  periodSeconds: count,
  timeoutSeconds: Type.Optional(count),
  failureThreshold: count,
});
const quantity = Type.String({ pattern: "^[0-9]+(m|Mi|Gi)?$" });
const variable = Type.Union([
  object({ name: Type.String(), value: Type.String() }),
  object({ name: Type.String(), valueFrom: object({ fieldRef: object({ fieldPath: Type.String() }) }) }),
]);

const container = object({
  name,
  image: Type.String({ pattern: "^[a-z0-9./-]+:[\\w.-]+$" }),
  env: Type.Array(variable),
  envFrom: Type.Array(
    Type.Union([object({ configMapRef: object({ name }) }), object({ secretRef: object({ name }) })]),
  ),
  ports: Type.Array(object({ name, containerPort: count })),
  startupProbe: probe,
  livenessProbe: probe,
  readinessProbe: probe,
  lifecycle: Type.Optional(object({ preStop: object({ exec: object({ command: Type.Array(Type.String()) }) }) })),
  resources: object({ requests: object({ cpu: quantity, memory: quantity }), limits: object({ memory: quantity }) }),
  securityContext: object({
    allowPrivilegeEscalation: exactly(false),
    readOnlyRootFilesystem: exactly(true),
    capabilities: object({ drop: Type.Array(exactly("ALL"), { minItems: 1 }) }),
  }),
  volumeMounts: Type.Array(object({ name, mountPath: Type.String({ pattern: "^/" }) })),
});

const pod = object({
  serviceAccountName: name,
  automountServiceAccountToken: Type.Boolean(),
  enableServiceLinks: exactly(false),
  terminationGracePeriodSeconds: count,
  securityContext: object({
    runAsNonRoot: exactly(true),
    runAsUser: count,
    runAsGroup: count,
    fsGroup: count,
    seccompProfile: object({ type: exactly("RuntimeDefault") }),
  }),
  topologySpreadConstraints: Type.Array(
    object({
      maxSkew: count,
      topologyKey: Type.String(),
      whenUnsatisfiable: Type.Union([exactly("ScheduleAnyway"), exactly("DoNotSchedule")]),
      labelSelector: selector,
    }),
  ),
  containers: Type.Array(container, { minItems: 1, maxItems: 1 }),
  volumes: Type.Array(object({ name, emptyDir: object({}) })),
});

const scaling = object({
  stabilizationWindowSeconds: Type.Integer({ minimum: 0 }),
  policies: Type.Array(object({ type: exactly("Pods"), value: count, periodSeconds: count })),
});

export const DEPLOYMENT = kind("apps/v1", "Deployment", {
  spec: object({
    replicas: Type.Optional(count),
    selector,
    strategy: object({
      type: exactly("RollingUpdate"),
      rollingUpdate: object({ maxSurge: count, maxUnavailable: Type.Integer({ minimum: 0 }) }),
    }),
    template: object({ metadata: object({ labels: words, annotations: words }), spec: pod }),
  }),
});
export const SERVICE = kind("v1", "Service", {
  spec: object({ selector: words, ports: Type.Array(object({ name, port: count, targetPort: Type.String() })) }),
});
export const SERVICE_ACCOUNT = kind("v1", "ServiceAccount", { automountServiceAccountToken: Type.Boolean() });
export const ROLE = kind("rbac.authorization.k8s.io/v1", "Role", {
  rules: Type.Array(
    object({
      apiGroups: Type.Array(Type.String()),
      resources: Type.Array(Type.String()),
      verbs: Type.Array(Type.String()),
    }),
  ),
});
export const ROLE_BINDING = kind("rbac.authorization.k8s.io/v1", "RoleBinding", {
  roleRef: object({ apiGroup: exactly("rbac.authorization.k8s.io"), kind: exactly("Role"), name }),
  subjects: Type.Array(object({ kind: exactly("ServiceAccount"), name })),
});
export const CONFIG_MAP = kind("v1", "ConfigMap", { data: words });
export const SECRET = kind("v1", "Secret", { type: exactly("Opaque"), stringData: words });
export const DISRUPTION_BUDGET = kind("policy/v1", "PodDisruptionBudget", {
  spec: object({ maxUnavailable: count, selector }),
});
export const AUTOSCALER = kind("autoscaling/v2", "HorizontalPodAutoscaler", {
  spec: object({
    scaleTargetRef: object({ apiVersion: exactly("apps/v1"), kind: exactly("Deployment"), name }),
    minReplicas: count,
    maxReplicas: count,
    metrics: Type.Array(
      object({
        type: exactly("External"),
        external: object({
          metric: object({ name: Type.String() }),
          target: object({ type: exactly("Value"), value: Type.String() }),
        }),
      }),
    ),
    behavior: object({ scaleUp: scaling, scaleDown: scaling }),
  }),
});
export const KUSTOMIZATION = object({
  apiVersion: exactly("kustomize.config.k8s.io/v1beta1"),
  kind: exactly("Kustomization"),
  resources: Type.Array(Type.String()),
});

const ajv = new Ajv2020({ strict: false, allErrors: true });

/** What is wrong with a value, in words; empty when it fits. */
export function misfits(schema: TSchema, value: unknown): string[] {
  const fits = ajv.compile(schema);
  if (fits(value)) return [];
  return (fits.errors ?? []).map(({ instancePath, message, params }) => {
    return `${instancePath || "/"} ${message} ${JSON.stringify(params)}`;
  });
}
