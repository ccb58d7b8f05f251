import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** Everyone who has a certificate, with the name and group that the API server knows them by. */
const subjects = {
  apiserver: "/CN=kube-apiserver",
  "kubelet-client": "/O=system:masters/CN=kubelet-client",
  admin: "/O=system:masters/CN=admin",
  "controller-manager": "/CN=system:kube-controller-manager",
  scheduler: "/CN=system:kube-scheduler",
  node: "/O=system:nodes/CN=system:node:n1",
  "policy-controller": "/O=system:masters/CN=policy-controller",
} as const;
export type Subject = keyof typeof subjects;

const days = "2";
/** The system's own settings would make each certificate an authority. */
const settings = "[req]\ndistinguished_name = name\n[name]\n";

/** Writes `<subject>.crt` and `.key` of all subjects, `ca.crt`, and the key of service accounts. */
export async function createCertificates(folder: string, address: string, service: string): Promise<void> {
  const path = (name: string) => join(folder, name);
  await writeFile(path("openssl.cnf"), settings);
  const made = ["req", "-config", path("openssl.cnf"), "-x509", "-newkey", "ec"];
  const curve = ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", days];
  const create = (name: string, subject: string, further: readonly string[]) =>
    execute("openssl", [
      ...[...made, ...curve, "-subj", subject],
      ...["-keyout", path(`${name}.key`), "-out", path(`${name}.crt`), ...further],
    ]);
  await create("ca", "/CN=ambit-test", ["-addext", "basicConstraints=critical,CA:TRUE"]);
  const alternatives: Partial<Record<Subject, string>> = {
    apiserver: `IP:${address},IP:127.0.0.1,IP:${service},DNS:kubernetes.default.svc`,
    node: `IP:${address},DNS:n1`,
  };
  await Promise.all(
    (Object.keys(subjects) as Subject[]).map((name) => {
      const names = alternatives[name];
      return create(name, subjects[name], [
        ...["-CA", path("ca.crt"), "-CAkey", path("ca.key")],
        ...["-addext", "extendedKeyUsage=serverAuth,clientAuth"],
        ...(names === undefined ? [] : ["-addext", `subjectAltName=${names}`]),
      ]);
    }),
  );
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await writeFile(path("accounts.key"), privateKey.export({ type: "sec1", format: "pem" }), { mode: 0o600 });
  await writeFile(path("accounts.pub"), publicKey.export({ type: "spki", format: "pem" }));
}

/** A kubeconfig that contains its certificates, so that it works from anywhere on this machine. */
export async function kubeconfig(folder: string, subject: Subject, server: string): Promise<string> {
  const read = async (name: string) => (await readFile(join(folder, name))).toString("base64");
  const [authority, certificate, key] = await Promise.all([
    read("ca.crt"),
    read(`${subject}.crt`),
    read(`${subject}.key`),
  ]);
  return `apiVersion: v1
kind: Config
clusters: [{name: tests, cluster: {server: "${server}", certificate-authority-data: ${authority}}}]
users: [{name: tests, user: {client-certificate-data: ${certificate}, client-key-data: ${key}}}]
contexts: [{name: tests, context: {cluster: tests, user: tests}}]
current-context: tests
`;
}
