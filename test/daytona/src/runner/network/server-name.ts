/**
 * The server name in a TLS client's first message; `undefined` without one, `"incomplete"` if more bytes are needed.
 */
export function serverName(data: Buffer): string | undefined | "incomplete" {
  const recordHeader = 5;
  if (data.length < recordHeader) return "incomplete";
  const isHandshake = data[0] === 22;
  if (!isHandshake) return undefined;
  const end = recordHeader + data.readUInt16BE(3);
  if (data.length < end) return "incomplete";
  try {
    // Type and length of the message, version, random.
    let position = recordHeader + 4 + 2 + 32;
    position += 1 + data.readUInt8(position); // Session id.
    position += 2 + data.readUInt16BE(position); // Cipher suites.
    position += 1 + data.readUInt8(position); // Compression methods.
    position += 2; // Length of all extensions.
    while (position + 4 <= end) {
      const type = data.readUInt16BE(position);
      const length = data.readUInt16BE(position + 2);
      const isServerName = type === 0;
      // After the length of the list, the kind of the name and its length.
      if (isServerName)
        return data
          .subarray(position + 9, position + 4 + length)
          .toString("latin1")
          .toLowerCase();
      position += 4 + length;
    }
  } catch (error) {
    // Truncated: no server would accept this message.
    if (!(error instanceof RangeError)) throw error;
  }
  return undefined;
}
