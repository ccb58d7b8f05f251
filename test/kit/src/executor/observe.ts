import { createHook } from "node:async_hooks";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Domain, Sandbox } from "@ambit/core/plugin";

/**
 * Kinds of asynchronous resources that only actions in a domain create. Servers and accepted connections are excluded.
 */
const domainOfResource: Readonly<Record<string, Domain>> = {
  TCPCONNECTWRAP: "network",
  PIPECONNECTWRAP: "network",
  UDPSENDWRAP: "network",
  GETADDRINFOREQWRAP: "network",
  QUERYWRAP: "network",
  PROCESSWRAP: "process",
};

/** The domains in which an executor acted during a call, on the runner and through its sandbox. */
export class CallObservation {
  readonly domains = new Set<Domain>();
  readonly #folder: string;
  readonly #before: string;
  readonly #hook = createHook({
    init: (_id, type) => {
      const domain = domainOfResource[type];
      if (domain !== undefined) this.domains.add(domain);
    },
  });

  /** @param folder where the executor is told to store its files; changes in it are observed. */
  constructor(folder: string) {
    this.#folder = folder;
    this.#before = listing(folder);
    this.#hook.enable();
  }

  /** The sandbox, with every use of it observed. */
  through(sandbox: Sandbox): Sandbox {
    const saw = (...domains: readonly Domain[]) => {
      for (const domain of domains) this.domains.add(domain);
    };
    return {
      workspace: sandbox.workspace,
      home: sandbox.home,
      confinement: sandbox.confinement,
      evidence: sandbox.evidence,
      spawn: (command) => {
        saw("process");
        if (Object.keys(command.env).length > 0) saw("environment");
        return sandbox.spawn(command);
      },
      writeFiles: (files) => {
        saw("filesystem");
        return sandbox.writeFiles(files);
      },
      readFile: (path) => {
        saw("filesystem");
        return sandbox.readFile(path);
      },
      // The run's own channel: the agent reaches the runner, and nothing else.
      expose: (handler) => sandbox.expose(handler),
      close: () => sandbox.close(),
    };
  }

  end(): ReadonlySet<Domain> {
    this.#hook.disable();
    if (listing(this.#folder) !== this.#before) this.domains.add("filesystem");
    return this.domains;
  }
}

function listing(folder: string): string {
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .sort()
    .map((path) => `${path} ${statSync(path).mtimeMs} ${statSync(path).size}`)
    .join("\n");
}
