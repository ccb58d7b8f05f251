import { describeModelGateway } from "@ambit/testkit/vitest";
import { configSchema, Gateway } from "../src/index.js";

// The kit's endpoint listens on loopback. It repeats the key, redirects, fails and never ends.
describeModelGateway(() => new Gateway(configSchema.parse({ privateRanges: ["127.0.0.0/8"] })));
