import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { isSeccompArchitecture } from "@ambit/attacks/system-calls";

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

/** Why the entering program can't run here as on a node. */
export const unknownMachine =
  process.platform === "linux" && isSeccompArchitecture(process.arch)
    ? undefined
    : `there is no entering program for ${process.platform} on ${process.arch}`;

/** Why it can't run here as in a pod. */
export const noPod =
  unknownMachine ??
  (await execute(asWhom, [...userWords, "true"]).then(
    () => undefined,
    () => "users of this host may make no user namespaces",
  ));
