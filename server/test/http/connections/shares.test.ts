import { expect, test } from "vitest";
import { sharesOf } from "../../../src/http/connections/shares.js";

test.each([
  ["as configured", 4_096, 1_000_000, { unknown: 1_024, known: 3_072, tenants: 2_304, perTenant: 576 }],
  ["a quarter of the open files", 4_096, 1_024, { unknown: 64, known: 192, tenants: 144, perTenant: 36 }],
  ["never fewer than sixteen", 16, 20, { unknown: 4, known: 12, tenants: 9, perTenant: 3 }],
])("connections are shared: %s", (_what, maxConnections, openFiles, expected) => {
  expect(sharesOf(maxConnections, openFiles)).toMatchObject(expected);
});
