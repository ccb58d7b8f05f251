import { rm } from "node:fs/promises";
import { sandboxAddress } from "./addresses.js";
import { Cgroups } from "./container/cgroups.js";
import { Container, snapshotFolder } from "./container/container.js";
import { Directory } from "./container/directory.js";
import type { Call, Network, Report, Setup, Substitution } from "./messages.js";
import type { Rules } from "./network/firewall.js";
import { listenOnGateways } from "./network/gateway-service.js";
import { Links } from "./network/links.js";
import { serveNames } from "./network/resolver.js";
import { WebProxy } from "./network/web-proxy.js";
import { WorldHosts } from "./network/world-hosts.js";

export type Say = (report: Report) => void;

/** The loopback's machine for sandboxes, with network and mount namespaces of its own. */
export class Runner {
  readonly #containers = new Map<string, Container>();

  private constructor(
    private readonly setup: Setup,
    private readonly say: Say,
    private readonly directory: Directory,
    private readonly links: Links,
    private readonly cgroups: Cgroups,
    private readonly hosts: WorldHosts,
  ) {}

  static async create(setup: Setup, say: Say): Promise<Runner> {
    const directory = new Directory(setup.essentials);
    const [links, cgroups] = await Promise.all([
      Links.create(setup.leaks),
      Cgroups.create(setup.name, setup.ownProcessors),
    ]);
    const hosts = new WorldHosts(directory, `${setup.folder}/world.sock`, setup.leaks, (id, host, port) =>
      say({ report: "datagram", id, host, port }),
    );
    await Promise.all([
      serveNames(directory, (id, name) => say({ report: "query", id, name })),
      new WebProxy(directory, hosts).listen(),
      ...(setup.leaks.includes("gateway") ? [listenOnGateways()] : []),
    ]);
    return new Runner(setup, say, directory, links, cgroups, hosts);
  }

  get limits(): readonly string[] {
    return this.cgroups.limits;
  }

  /** Returns a pid for a start, else undefined. */
  async do(call: Call): Promise<number | undefined> {
    switch (call.method) {
      case "create":
        this.#containers.set(
          call.spec.id,
          await Container.create(call.spec, this.setup.folder, this.cgroups),
        );
        return undefined;
      case "start":
        return await this.#start(this.#container(call.id), call.network, call.substitutions, call.env);
      case "network": {
        const container = this.#container(call.id);
        this.#describe(container, call.network, call.substitutions);
        if (container.pid !== undefined)
          await this.links.apply(this.#rules(container, call.network, call.substitutions));
        return undefined;
      }
      case "stop":
        await this.#container(call.id).stop();
        return undefined;
      case "destroy": {
        // It may have failed before it had a container.
        const container = this.#containers.get(call.id);
        this.#containers.delete(call.id);
        await container?.destroy();
        return undefined;
      }
      case "snapshot":
        await this.#container(call.id).copyTo(snapshotFolder(this.setup.folder, call.snapshot));
        return undefined;
      case "forget":
        await rm(snapshotFolder(this.setup.folder, call.snapshot), { recursive: true, force: true });
        return undefined;
      case "host":
        await this.links.addHost(call.address);
        await this.hosts.add(call.name, call.address, call.ports);
        return undefined;
      case "close":
        await this.close();
        return undefined;
    }
  }

  /** Ends every container. The namespaces end with this process. */
  async close(): Promise<void> {
    const containers = [...this.#containers.values()];
    this.#containers.clear();
    await Promise.allSettled(containers.map((container) => container.destroy()));
    await this.cgroups.removeAll();
  }

  async #start(
    container: Container,
    network: Network,
    substitutions: readonly Substitution[],
    env: Readonly<Record<string, string>>,
  ): Promise<number> {
    const { id, index } = container.spec;
    this.#describe(container, network, substitutions);
    return await container.start(
      env,
      (pid) => this.links.connect(pid, this.#rules(container, network, substitutions)),
      async () => {
        this.directory.removeSandbox(sandboxAddress(index));
        await this.links.disconnect(index).finally(() => this.say({ report: "exited", id }));
      },
    );
  }

  #describe(container: Container, network: Network, substitutions: readonly Substitution[]): void {
    const { id, index } = container.spec;
    this.directory.setSandbox(sandboxAddress(index), { id, network, substitutions });
  }

  #rules(container: Container, network: Network, substitutions: readonly Substitution[]): Rules {
    return {
      index: container.spec.index,
      network,
      substitutes: substitutions.length > 0,
      essentialAddresses: this.directory.essentialAddresses,
      openResolver: this.setup.openResolver,
      leaks: this.setup.leaks,
    };
  }

  #container(id: string): Container {
    const container = this.#containers.get(id);
    if (!container) throw new Error(`no container ${id}`);
    return container;
  }
}
