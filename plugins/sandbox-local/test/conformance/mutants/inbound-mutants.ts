import type { Patch } from "./make-mutant.js";
import type { MutantCase } from "./mutants.js";

const capability = "inbound.ports";

const plugin = (file: string, find: string, replace: string): Patch => ({
  of: "plugin",
  file,
  find,
  replace,
});

/** The local sandbox with a careless way for the runner's connections into a jail. */
export const inboundMutants: readonly MutantCase[] = [
  {
    name: "inbound ports not compared with the list",
    patches: [plugin("expose/channel.js", "boundary.inbound?.includes(port) !== true", "false")],
    capability,
    caughtBy: [`${capability}/unlisted-port`],
  },
  {
    name: "inbound connections made by the runner where no jail answers",
    patches: [
      plugin(
        "expose/channel.js",
        "throw new SandboxFailed(`Nothing listens",
        `const { createConnection } = await import("node:net");
    const { once } = await import("node:events");
    const made = createConnection({ host: "localhost", port });
    if (await once(made, "connect").then(() => true, () => false)) return made;
    throw new SandboxFailed(\`Nothing listens`,
      ),
    ],
    capability,
    caughtBy: [`${capability}/host-loopback`],
  },
  {
    name: "inbound connections shared between sessions",
    patches: [
      plugin("confined/session.js", "#jails = new Set();", "#jails = jails;"),
      {
        of: "plugin",
        file: "confined/session.js",
        find: "export class ConfinedSandbox",
        replace: "const jails = new Set();\nexport class ConfinedSandbox",
      },
    ],
    capability,
    caughtBy: [`${capability}/another-session`],
  },
  {
    name: "inbound connections and their jail kept after the end",
    patches: [
      plugin(
        "confined/jail.js",
        "await inbound?.close();\n            if (this.#wasKilled)",
        "if (this.#wasKilled)",
      ),
      plugin("confined/jail.js", "this.#init = init;", "this.#init = init; this.launcher = child;"),
      plugin(
        "confined/jail.js",
        "this.#wasKilled ||= !hasEnded(this.#init);\n        endProcess(this.#init);",
        'this.launcher.kill("SIGKILL");',
      ),
      plugin("confined/jail.js", "endProcess(init);\n            await untilEnded(init);", ""),
      plugin("confined/arguments.js", '"--die-with-parent", ', ""),
    ],
    capability,
    caughtBy: [`${capability}/outlive-close`],
  },
];
