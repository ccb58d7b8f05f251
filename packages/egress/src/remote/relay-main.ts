import { lineOf, MessageReader, maxMessageBytes } from "./lines.js";
import type { RelaySettings } from "./messages.js";
import { startRelay } from "./relay.js";

const say = (message: object) => process.stdout.write(lineOf(message));
let silence: NodeJS.Timeout | undefined;
const reader = new MessageReader(maxMessageBytes, (message) => {
  // The type is the runner's, which this program came with.
  if (silence === undefined) void begin(message as RelaySettings);
  else say({ pong: true });
});

async function begin(settings: RelaySettings): Promise<void> {
  silence = setTimeout(() => process.exit(), settings.silenceMs);
  try {
    const afterMs = await startRelay(settings);
    say({ ready: { afterMs: Math.round(afterMs) } });
  } catch (error) {
    say({ failed: String(error) });
    setTimeout(() => process.exit(1), 100);
  }
}

process.stdin.on("data", (bytes: Buffer) => {
  silence?.refresh();
  reader.push(bytes);
});
// The runner, or the way to it, is gone.
for (const event of ["end", "close", "error"]) process.stdin.once(event, () => process.exit());
