/** Builds the sandbox image's archive before the tests: `scripts/test.mjs` does so in parallel with its other checks. */
import { imageArchive } from "@ambit/test-machine";

await imageArchive();
