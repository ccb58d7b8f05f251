import { describeToolSource } from "@ambit/testkit/vitest";
import { configSchema } from "../src/config.js";
import { HttpToolSource } from "../src/http-source.js";
import { StdioToolSource } from "../src/stdio-source.js";

const loopback = { allowedRanges: ["127.0.0.0/8"], loopbackWithoutTls: true };

describeToolSource(() => new HttpToolSource(configSchema.parse(loopback)));
describeToolSource(() => new StdioToolSource(configSchema.parse({})));
