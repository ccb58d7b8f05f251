import type { Command, Sandbox } from "@ambit/core/plugin";

/** The number of live processes that were spawned in a sandbox, without their children. */
export class LiveProcesses {
  count = 0;

  /** Wraps the sandbox so that its processes are counted. */
  of(sandbox: Sandbox): Sandbox {
    const spawn = async (command: Command) => {
      const process = await sandbox.spawn(command);
      this.count += 1;
      void process.exit.finally(() => {
        this.count -= 1;
      });
      return process;
    };
    // Its methods keep their own `this`: a sandbox may be a class with private fields.
    return new Proxy(sandbox, {
      get(target, name) {
        if (name === "spawn") return spawn;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }
}
