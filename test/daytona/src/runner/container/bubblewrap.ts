import { existsSync, lstatSync } from "node:fs";
import type { SandboxSpec } from "../messages.js";
import { daemon, nodeInside, systemLinks, users } from "./image.js";

/** What root always keeps inside: enough to create users and to end their processes. */
const capabilities = [
  "CHOWN",
  "DAC_OVERRIDE",
  "FOWNER",
  "FSETID",
  "KILL",
  "SETGID",
  "SETUID",
  "SETPCAP",
  "NET_BIND_SERVICE",
  "NET_RAW",
  "SYS_CHROOT",
  "AUDIT_WRITE",
];
/**
 * What root keeps in a privileged container: to mount in its own namespace, and to set rules in its own network. Not
 * access to the machine's devices, kernel modules or clock, which a privileged container of Docker has too.
 */
const privileged = [...capabilities, "SYS_ADMIN", "NET_ADMIN"];

/** Read-only parts of the machine's /etc that programs of /usr expect. */
const systemSettings = ["/etc/ssl", "/etc/alternatives", "/etc/pam.d", "/etc/security", "/etc/login.defs"];

/** Path inside the sandbox of a daemon that isn't the loopback's own. */
const foreignDaemon = "/opt/daytona-daemon";

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The daemon's environment, which everything in the sandbox inherits. */
function environment(spec: SandboxSpec, extra: Readonly<Record<string, string>>): Record<string, string> {
  const { user } = spec.image;
  const node = nodeInside();
  return {
    PATH: node.bind ? `/opt/node/bin:${path}` : path,
    HOME: users[user].home,
    USER: user,
    LANG: "C.UTF-8",
    ...spec.image.env,
    ...spec.env,
    ...extra,
    DAYTONA_SANDBOX_ID: spec.id,
    DAYTONA_SANDBOX_USER: user,
    // For the loopback's own daemon, and for Daytona's (`apps/daemon/cmd/daemon/config/config.go`).
    ...(spec.daemon === undefined
      ? { LOOPBACK_SESSION_GRACE_MS: String(spec.sessionGraceMs) }
      : { DAYTONA_TERMINATION_GRACE_PERIOD: `${Math.max(1_000, spec.sessionGraceMs)}ms` }),
  };
}

/** bwrap's options, for its `--args`: they contain the sandbox's variables, which no process list may show. */
export function options(spec: SandboxSpec, root: string, env: Readonly<Record<string, string>>): string[] {
  const node = nodeInside();
  const bound = systemLinks.filter(
    (name) => existsSync(`/${name}`) && !lstatSync(`/${name}`).isSymbolicLink(),
  );
  const readOnly = (source: string, target: string) => ["--ro-bind", source, target];
  return [
    ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"],
    // Daytona's daemon collects the processes that lose their parent, as it is the first one in its container. The
    // loopback's own doesn't: bubblewrap does it.
    ...(spec.daemon === undefined ? [] : ["--as-pid-1"]),
    ...["--die-with-parent", "--hostname", spec.id.slice(0, 12)],
    ...["--bind", root, "/"],
    ...readOnly("/usr", "/usr"),
    ...bound.flatMap((name) => readOnly(`/${name}`, `/${name}`)),
    ...systemSettings.flatMap((file) => ["--ro-bind-try", file, file]),
    ...["--proc", "/proc", "--dev", "/dev"],
    ...readOnly(daemon.source, `${daemon.folder}/dist`),
    ...readOnly(daemon.manifest, `${daemon.folder}/package.json`),
    ...(spec.daemon === undefined ? [] : readOnly(spec.daemon, foreignDaemon)),
    ...(node.bind ? readOnly(node.bind[0], node.bind[1]) : []),
    ...Object.entries(spec.image.binds).flatMap(([source, target]) => readOnly(source, target)),
    ...["--cap-drop", "ALL"],
    ...(spec.image.privileged ? privileged : capabilities).flatMap((name) => ["--cap-add", `CAP_${name}`]),
    "--clearenv",
    ...Object.entries(environment(spec, env)).flatMap(([name, value]) => ["--setenv", name, value]),
    ...["--chdir", users[spec.image.user].home],
  ];
}

/** The daemon's command line, as the image's user. */
export function command(spec: SandboxSpec): string[] {
  const run = spec.daemon === undefined ? [nodeInside().program, daemon.main] : [foreignDaemon];
  if (spec.image.user === "root") return run;
  const id = String(users[spec.image.user].uid);
  const bare = ["--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all"];
  return ["setpriv", "--reuid", id, "--regid", id, "--init-groups", ...bare, ...run];
}
