/** The owner of a loopback with a sandbox, for the test to kill. Prints the sandbox's pid and waits. */
import { startLoopbackDaytona } from "@ambit/daytona-loopback";
import { Daytona } from "@daytona/sdk";

const loopback = await startLoopbackDaytona({ startDelayMs: 0 });
const { apiKey, apiUrl } = loopback;
await new Daytona({ apiKey, apiUrl, target: "us" }).create();
process.stdout.write(`${loopback.sandboxes()[0]?.pid}\n`);
setInterval(() => {}, 1_000);
