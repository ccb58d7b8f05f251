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

Java's own clients don't read the variables: give them \`-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128\`, and the same
for \`https\`.

## What tells a program its limits

\`nproc\` and \`free\` show the whole host. Under \`resources\`, the agent, its commands and the commands of \`environment.setup\` have variables
that common tools read. Your own value of one, in \`environment.env\` or the agent's configuration, wins.

| limit | variables |
|---|---|
| \`cpus\`, rounded up | \`GOMAXPROCS\`, \`CARGO_BUILD_JOBS\`, \`CMAKE_BUILD_PARALLEL_LEVEL\`, \`RAYON_NUM_THREADS\`, \`OMP_NUM_THREADS\` |
| \`memoryMb\` | \`GOMEMLIMIT\` (nine tenths), \`NODE_OPTIONS=--max-old-space-size=…\` (three quarters) |

For Java, start it with \`-XX:ActiveProcessorCount\` and \`-XX:MaxRAM\`: the JVM prints each variable that it takes options from on stderr.

## Refused by design

| program | what it would do | instead |
|---|---|---|
${refused.map(({ name, does, instead }) => `| ${cell(name)} | ${cell(does)} | ${cell(instead)} |`).join("\n")}
`;
}
