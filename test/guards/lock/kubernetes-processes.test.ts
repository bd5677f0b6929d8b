// Leases between processes: on a stand-in, and with KUBECONFIG set on a real API server as well.

import { lockProcesses } from "../../conformance/lock-processes.ts";
import { startKubernetesStandIn } from "../../support/kubernetes-stand-in.ts";

lockProcesses("Kubernetes stand-in", 1_000, async () => {
  const server = await startKubernetesStandIn();
  return { at: { kubeconfig: server.kubeconfig, namespace: "carillon" }, stop: server.close };
});

const { KUBECONFIG, KUBERNETES_TEST_NAMESPACE: namespace = "default" } = process.env;
if (KUBECONFIG) {
  lockProcesses("Kubernetes", 1_000, async () => ({
    at: { namespace },
    stop: async () => undefined,
  }));
}
