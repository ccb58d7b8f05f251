const object = (properties) => ({ type: "object", properties, required: Object.keys(properties) });
const text = { type: "string" };

/** The request of every chat, as a platform has it: its agent, its boundary, its tools. */
export const request = {
  harness: "demo",
  // Nothing outside can be reached, and nothing outside the workspace can be written.
  sandboxPermission: { network: "off", filesystem: "workspace" },
  // The chat shows what the agent draws.
  outputs: { include: ["*.png", "*.jpg", "*.webp"] },
  permissions: { default: "allow", rules: [{ pattern: "delete_bookings", permission: "deny" }] },
  customTools: [
    {
      name: "find_trains",
      description: "Trains between two cities.",
      kind: "code",
      runtime: "node",
      code: `export const main = ({ from, to }) => [
        { train: "IC 1", from, to, departs: "9:02", euros: 38 },
        { train: "IR 15", from, to, departs: "9:32", euros: 29 },
      ];`,
      inputSchema: object({ from: text, to: text }),
    },
    {
      name: "choose_seat",
      description: "Lets the user choose a seat.",
      kind: "client",
      inputSchema: object({ train: text }),
    },
    {
      name: "book_train",
      description: "Books a train, if the user allows it.",
      kind: "code",
      runtime: "node",
      code: `export const main = ({ train }) => ({ booked: train, reference: "AMB-" + train.length * 1307 });`,
      permission: "ask",
      inputSchema: object({ train: text, euros: { type: "number" } }),
    },
    {
      name: "delete_bookings",
      description: "Deletes every booking.",
      kind: "code",
      runtime: "node",
      code: "export const main = () => 'deleted';",
      inputSchema: { type: "object" },
    },
  ],
};
