/** Builds the sandbox image's archive ahead of the tests: `scripts/test.mjs` does so beside its other checks. */
import { imageArchive } from "./image.js";

await imageArchive();
