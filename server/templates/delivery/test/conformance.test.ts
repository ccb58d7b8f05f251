import { describeToolDelivery } from "@ambit/testkit/vitest";
import { Delivery } from "../src/index.js";

// An agent of the kit must see its tools unchanged, nothing that is meant for the runner, and nothing without the token.
describeToolDelivery(() => new Delivery());
