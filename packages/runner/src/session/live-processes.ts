import type { Command, Sandbox } from "@ambit/core/plugin";

/** How many processes of a sandbox are alive, those that the processes start themselves not included. */
export class LiveProcesses {
  count = 0;

  /** The sandbox, counting what it spawns. */
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
