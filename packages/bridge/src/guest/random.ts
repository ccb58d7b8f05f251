import { closeSync, openSync, readSync } from "node:fs";

const bytes = 16;

/** Random text of the kernel's: 32 hexadecimal digits. To load `node:crypto` would delay the guest daemon's start by 4 ms. */
export function randomText(): string {
  const device = openSync("/dev/urandom", "r");
  try {
    const text = Buffer.alloc(bytes);
    readSync(device, text);
    return text.toString("hex");
  } finally {
    closeSync(device);
  }
}
