import { configSchema, McpHttpDelivery } from "@ambit/mcp-http";
import { describeToolDelivery } from "../../src/index.js";

describeToolDelivery(() => new McpHttpDelivery(configSchema.parse({})));
