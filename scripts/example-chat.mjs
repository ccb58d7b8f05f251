/** `npm run example:chat`, after `npm run setup`: the page of `examples/chat`, with the Node that set-up found or brought. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { root } from "./setup.mjs";
import { onSupportedNode } from "./supported-node.mjs";

await onSupportedNode(async () => {
  // Its servers are on loopback, which never goes through a proxy.
  const env = { ...process.env, NO_PROXY: "127.0.0.1", no_proxy: "127.0.0.1" };
  const child = spawn(process.execPath, [join(root, "examples/chat/start.mjs")], { stdio: "inherit", env });
  // Ctrl-C reaches both, and the page's server ends itself.
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"]))
    process.on(signal, () => child.kill(signal));
  const [code] = await once(child, "close");
  return code ?? 1;
});
