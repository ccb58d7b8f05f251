import { describeModelGateway } from "@ambit/testkit/vitest";
import { configSchema, ModelRouteGateway } from "../src/index.js";

describeModelGateway(() => new ModelRouteGateway(configSchema.parse({})));
