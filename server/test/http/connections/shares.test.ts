import { expect, test } from "vitest";
import { sharesOf } from "../../../src/http/connections/connections.js";

test.each([
  ["as configured", 4_096, 1_000_000, { unknown: 2_048, known: 2_048, tenants: 1_536, perTenant: 384 }],
  ["half of the open files", 4_096, 1_024, { unknown: 256, known: 256, tenants: 192, perTenant: 48 }],
  ["never fewer than sixteen", 16, 20, { unknown: 8, known: 8, tenants: 6, perTenant: 2 }],
])("connections are shared: %s", (_what, maxConnections, openFiles, expected) => {
  expect(sharesOf(maxConnections, openFiles)).toMatchObject(expected);
});
