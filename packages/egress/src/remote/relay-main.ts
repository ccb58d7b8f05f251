import { LineReader, lineOf, maxMessageBytes } from "./lines.js";
import type { RelaySettings } from "./messages.js";
import { startRelay } from "./relay.js";

const say = (message: object) => process.stdout.write(lineOf(message));
// The type is the runner's, which this program came with.
const reader = new LineReader(maxMessageBytes, (message) => void begin(message as RelaySettings));

async function begin(settings: RelaySettings): Promise<void> {
  try {
    const afterMs = await startRelay(settings);
    say({ ready: { afterMs: Math.round(afterMs) } });
  } catch (error) {
    say({ failed: String(error) });
    setTimeout(() => process.exit(1), 100);
  }
}

process.stdin.on("data", (bytes: Buffer) => reader.push(bytes));
// The runner, or the way to it, is gone.
for (const event of ["end", "close", "error"]) process.stdin.once(event, () => process.exit());
