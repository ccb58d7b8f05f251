import { languages } from "./languages.js";
import { network } from "./network.js";
import type { Program } from "./program.js";
import { refused } from "./refused.js";
import { tools } from "./tools.js";

const cell = (text: string) => text.replaceAll("|", "\\|");

function rows(programs: readonly Program[]): string {
  return programs.map(({ name, does }) => `| ${cell(name)} | ${cell(does)} |`).join("\n");
}

/** The page of the documentation that lists the programs: `docs/programs.md`. */
export function programsPage(): string {
  return `# Programs that work inside

A sandbox that breaks ordinary work is turned off. Each row is a test that runs the program in a jail of
[sandbox-local](../plugins/sandbox-local/README.md) with its defaults, if the machine has the program:
\`npx vitest run plugins/sandbox-local/test/programs\`, which also writes this page (\`-u\`).

## Without a network

| program | what it does there |
|---|---|
${rows([...languages, ...tools])}

Rust's toolchain is in a home, where rustup puts it: sandbox-local's \`readOnlyMounts\` makes it visible.

## With an allowlist

The list has one host, which only the proxy resolves, and one port of the host's loopback. The programs are given URLs
and nothing else: the proxy is in their environment.

| program | what it does there |
|---|---|
${rows(network)}

## Programs that must be told of the proxy

A jail has no network of its own and no name server: there is the proxy, at the address in \`HTTP_PROXY\`, and its SOCKS5 at
the same port. A program that doesn't read \`HTTP_PROXY\` and its siblings fails with a name that "could not be resolved" (\`ENOTFOUND\`,
\`EAI_AGAIN\`, \`UnknownHostException\`), and no event says so, since the boundary's proxy never hears of it. Each row was tried in a
jail, except where it says otherwise.

| program | what it needs |
|---|---|
| Node's \`fetch\`, \`http\` and \`https\`, the global \`WebSocket\` | nothing: \`NODE_USE_ENV_PROXY=1\` is set, and older versions of Node have a preloaded file |
| Node's packages with sockets of their own, such as \`ws\` | an agent, such as that of the package \`https-proxy-agent\`, with \`process.env.HTTPS_PROXY\` |
| Maven | nothing: \`MAVEN_OPTS\` is set. Your own value in the agent's environment is added to it; a script that sets another one keeps what is there (\`MAVEN_OPTS="$MAVEN_OPTS -Xmx1g"\`) |
| Gradle, sbt | the same by \`GRADLE_OPTS\` and \`SBT_OPTS\` (not tried) |
| Java | \`-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128\`, and the same for \`https\`. Not \`JAVA_TOOL_OPTIONS\`, which prints a line to stderr in every program |
| ssh, scp, rsync | nothing in sandbox-local: \`/etc/ssh/ssh_config\` has a \`ProxyCommand\`, which also prints why the boundary refused a host. In a sandbox with an image: \`-o ProxyCommand='nc -X 5 -x 127.0.0.1:3128 %h %p'\` with OpenBSD's \`nc\`, and the port of \`HTTP_PROXY\`. No host key is known inside: bring \`~/.ssh/known_hosts\`. Git over SSH to a host of a [credential](credentials.md) goes over HTTPS by itself |
| database drivers, SMTP, redis | a SOCKS5 option of the driver, or a relay such as \`socat TCP-LISTEN:5432,fork PROXY:127.0.0.1:db.example:5432,proxyport=3128\` |
| Go, Rust | nothing: they read the variables. So do .NET, PHP's curl and Ruby (not tried) |

A company's certificate authority in this host's store (\`/etc/ssl/certs\`, \`/etc/pki\`) is trusted by programs that bring their own
authorities too: Node, npm, pip, requests, cargo, Deno, AWS's tools and others have it from variables. Java has a store of its own:
\`-Djavax.net.ssl.trustStore\`.

## What tells a program its limits

Under \`resources\`, the agent, its commands and the commands of \`environment.setup\` have variables that common tools read.
Your own value of one, in \`environment.env\` or the agent's configuration, wins.

| limit | variables |
|---|---|
| \`cpus\`, rounded up | \`GOMAXPROCS\`, \`CARGO_BUILD_JOBS\`, \`CMAKE_BUILD_PARALLEL_LEVEL\`, \`RAYON_NUM_THREADS\`, \`OMP_NUM_THREADS\`, which \`nproc\` reads too, \`PYTHON_CPU_COUNT\` |
| \`memoryMb\` | \`GOMEMLIMIT\` (nine tenths), \`NODE_OPTIONS=--max-old-space-size=…\` (three quarters) |

The limits are also where programs look for those of a container, read-only: \`/sys/fs/cgroup\` is the session's own group.
\`cpu.max\`, \`memory.max\` and \`pids.max\` are there on every host. Where the host has cgroups of version 1, so are the
groups of its controllers, which Node.js and Rust read; Java wants further ones then, and sees the host.

| program | what it still shows of the host | instead |
|---|---|---|
| \`free\`, \`/proc/meminfo\` | the memory | \`/sys/fs/cgroup/memory.max\` |
| \`lscpu\`, \`/proc/cpuinfo\`, Python before 3.13 | the processors: a share of 0.5 is time on all of them | \`/sys/fs/cgroup/cpu.max\` |
| Java, on cgroups of version 1 | both | \`-XX:ActiveProcessorCount\` and \`-XX:MaxRAM\`: the JVM prints each variable that it takes options from on stderr |

A process that is killed because all of a session's together reached \`memoryMb\` ends by SIGKILL, which a shell shows as exit code
137, and says nothing itself. The run's result then has a warning that names the limit.

## Refused by design

| program | what it would do | instead |
|---|---|---|
${refused.map(({ name, does, instead }) => `| ${cell(name)} | ${cell(does)} | ${cell(instead)} |`).join("\n")}
`;
}
