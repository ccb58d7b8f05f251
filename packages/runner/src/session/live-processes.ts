import { inOffer, offerUnderWay, ofOffer, outsideOffers, type PluginOffer } from "@ambit/core";
import type { Command, FetchHandler, Sandbox } from "@ambit/core/plugin";

/** The number of live processes that were spawned in a sandbox, without their children. */
export class LiveProcesses {
  count = 0;

  /**
   * Wraps the sandbox so that its processes are counted, and that what its methods start is its backend's, even if another
   * plugin calls them.
   */
  of(sandbox: Sandbox, backend: PluginOffer): Sandbox {
    const spawn = async (command: Command) => {
      const process = await inOffer(backend, () => sandbox.spawn(command));
      this.count += 1;
      void process.exit.finally(() => {
        this.count -= 1;
      });
      return process;
    };
    const expose = (handler: FetchHandler) => {
      const owner = offerUnderWay();
      const within = <Result>(call: () => Result) =>
        owner === undefined ? outsideOffers(call) : inOffer(owner, call);
      return inOffer(backend, () => sandbox.expose((request) => within(() => handler(request))));
    };
    return ofOffer(backend, sandbox, { spawn, expose });
  }
}
