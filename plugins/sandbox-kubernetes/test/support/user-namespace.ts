import { execFile } from "node:child_process";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** As in a pod: root of a user namespace, with processes, mounts and a network that it may change. */
const pod = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--mount", "--net"];
/** Somebody else than root, who is root inside. */
const asUser =
  process.getuid?.() === 0 ? ["setpriv", "--reuid=61000", "--regid=61000", "--clear-groups", "--"] : ["env"];
const [asWhom = "", ...userWords] = [...asUser, "unshare", ...pod];

/** Runs a command there, where `/tmp` and `/etc/hosts` are mounts. */
export const inPod = async (argv: readonly string[]) => {
  const setUp = 'mount -t tmpfs none /tmp && mount --bind /etc/hosts /etc/hosts && exec "$@"';
  const { stdout } = await execute(asWhom, [...userWords, "/bin/sh", "-c", setUp, "sh", ...argv]);
  return stdout;
};

/** Whether this host has such namespaces for its users. */
export const hasNamespaces = await execute(asWhom, [...userWords, "true"]).then(
  () => true,
  () => false,
);
