import { programAttack } from "./program-attack.js";

/**
 * The runner's own environment holds the decoys' secret during these attacks. Variables that confinement itself needs
 * are allowed: the places of home and scratch, the proxy, the certificates to trust, and a backend's own marks.
 */
export const environmentNamedOnly = [
  programAttack({
    id: "environment.named-only/own",
    title: "find the runner's variables in its own environment",
    program: `
attempt("environ", lambda: leaks(json.dumps(dict(os.environ))))
attempt("proc", lambda: leaks(content("/proc/self/environ")))`,
  }),
  programAttack({
    id: "environment.named-only/unnamed",
    title: "find a variable that wasn't named for it",
    options: { env: { NAMED_FOR_IT: "1" } },
    program: `
expected = re.compile(r"^(NAMED_FOR_IT|PATH|HOME|TMPDIR|PWD|OLDPWD|SHLVL|_|LANG|LC_[A-Z]+|USER|LOGNAME|SHELL|TERM|TZ|"
                      r"(?i:[a-z]+_proxy)|NODE_[A-Z_]+|[AL]SAN_OPTIONS|AMBIT_[A-Z_]+|container)$")
# Only as the name of a file that every program may read.
trust = re.compile(r"^(SSL_CERT_FILE|(CURL|REQUESTS|AWS)_CA_BUNDLE|(GIT_SSL|CARGO_HTTP)_CAINFO|npm_config_cafile|DENO_CERT|PIP_CERT|"
                   r"CODEX_CA_CERTIFICATE)$")
java = re.compile(r"^(-Dhttps?.proxy(Host|Port)=[0-9.]+( |$))+$")
def is_named(name):
    value = os.environ[name]
    return (expected.match(name) or trust.match(name) and os.path.isfile(value)
            or re.match(r"^(MAVEN|GRADLE|SBT)_OPTS$", name) and java.match(value))
attempt("names", lambda: " ".join(name for name in os.environ if not is_named(name)))`,
  }),
  programAttack({
    id: "environment.named-only/children",
    title: "find the runner's variables in a program that it starts",
    program: `
attempt("env", lambda: leaks(subprocess.run(["/usr/bin/env"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL).stdout))
attempt("login shell", lambda: leaks(subprocess.run(["/bin/sh", "-lc", "env"], stdout=subprocess.PIPE,
                                                    stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL).stdout))`,
  }),
  programAttack({
    id: "environment.named-only/init",
    stoppedBy: ["cleared environment", "guard of the first process"],
    title: "find the runner's variables in the process that launched it (the jail's own)",
    program: `
attempt("launcher", lambda: each(["/proc/1/environ", "/proc/%d/environ" % os.getppid()], content))
attempt("its memory", lambda: each(["/proc/1/environ", "/proc/%d/task/%d/environ" % (os.getppid(), os.getppid())], content))`,
  }),
  programAttack({
    id: "environment.named-only/all-processes",
    title: "find the runner's variables in any visible process",
    program: `
attempt("environments", lambda: each(glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/task/*/environ"), content))
attempt("command lines", lambda: each(glob.glob("/proc/[0-9]*/cmdline"), content))`,
  }),
] as const;
