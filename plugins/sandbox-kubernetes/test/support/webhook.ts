import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import type { TestNamespace } from "./on-cluster.js";

const execute = promisify(execFile);
const group = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

const ofPods = { apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] };
export const ofPolicies = { ...ofPods, apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"] };

/**
 * A mutating webhook of the cluster for one namespace, as a service mesh has one: it applies a patch to every new pod, or to
 * other new objects.
 */
export async function startWebhook(
  namespace: TestNamespace,
  patch: readonly object[],
  kind: object = ofPods,
): Promise<() => Promise<void>> {
  const address = namespace.own.place.hostAddress;
  const folder = await mkdtemp(join(tmpdir(), "ambit-webhook-"));
  const file = (name: string) => join(folder, name);
  await execute("openssl", [
    ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=webhook"],
    ...["-keyout", file("key"), "-out", file("certificate"), "-addext", `subjectAltName=IP:${address}`],
  ]);
  const [key, cert] = await Promise.all([readFile(file("key")), readFile(file("certificate"))]);
  await rm(folder, { recursive: true, force: true });
  const server = createServer({ key, cert }, async (request, response) => {
    const { request: asked } = Object(await json(request));
    const answer = {
      uid: asked.uid,
      allowed: true,
      patchType: "JSONPatch",
      patch: Buffer.from(JSON.stringify(patch)).toString("base64"),
    };
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }),
    );
  });
  await once(server.listen(0, address), "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("it doesn't listen");
  const name = `${namespace.name}.tests.ambit`;
  await namespace.request("POST", group, {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name },
    webhooks: [
      {
        name: `pods.${name}`,
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        failurePolicy: "Fail",
        clientConfig: { url: `https://${address}:${bound.port}/`, caBundle: cert.toString("base64") },
        rules: [{ operations: ["CREATE"], ...kind }],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace.name } },
      },
    ],
  });
  return async () => {
    await namespace.request("DELETE", `${group}/${name}`);
    server.closeAllConnections();
    server.close();
  };
}
