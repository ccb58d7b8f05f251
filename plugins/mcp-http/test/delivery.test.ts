import { describeToolDelivery } from "@ambit/testkit/vitest";
import { configSchema, McpHttpDelivery } from "../src/index.js";

describeToolDelivery(() => new McpHttpDelivery(configSchema.parse({})));
