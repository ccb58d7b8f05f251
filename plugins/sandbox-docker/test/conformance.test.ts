import { describeConformance } from "./support/on-engine.js";

await describeConformance("runc");
