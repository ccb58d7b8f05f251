import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestNamespace } from "./on-cluster.js";

/** The kubeconfig of an account with what runners need, and more rules. */
export async function accountWith(namespace: TestNamespace, more: readonly object[]): Promise<string> {
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace.name}`;
  const kind = { apiVersion: "rbac.authorization.k8s.io/v1", metadata: { name: "runner" } };
  const accounts = `/api/v1/namespaces/${namespace.name}/serviceaccounts`;
  await namespace.request("POST", accounts, { metadata: { name: "runner" } });
  await namespace.request("POST", `${rbac}/roles`, {
    ...kind,
    rules: [
      { apiGroups: [""], resources: ["pods"], verbs: ["create", "get", "delete", "list", "watch"] },
      { apiGroups: [""], resources: ["pods/exec"], verbs: ["create", "get"] },
      { apiGroups: [""], resources: ["events"], verbs: ["list"] },
      { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["list"] },
      {
        apiGroups: ["coordination.k8s.io"],
        resources: ["leases"],
        verbs: ["create", "get", "update", "delete", "list"],
      },
      ...more,
    ],
  });
  await namespace.request("POST", `${rbac}/rolebindings`, {
    ...kind,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "runner" },
    subjects: [{ kind: "ServiceAccount", name: "runner", namespace: namespace.name }],
  });
  const { status } = await namespace.request("POST", `${accounts}/runner/token`, { spec: {} });
  const { address, folder } = namespace.own.place;
  const cluster = {
    server: `https://${address}:6443`,
    "certificate-authority": join(folder, "keys", "ca.crt"),
  };
  const file = `${namespace.settings.dataFolder}-runner.conf`;
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "x",
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user: { token: Object(status).token } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
  };
  await writeFile(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}
