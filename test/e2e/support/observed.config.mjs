/** Reports each refused request on stderr. */
import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";

const observer = {
  name: "reporter",
  observe: () => ({ entered() {}, happened() {}, ended() {} }),
  refused: ({ code }) => process.stderr.write(`observed ${code}\n`),
};

export default {
  plugins: [
    definePlugin({
      name: "reporter",
      api: 1,
      config: z.strictObject({}),
      register: (registrar) => registrar.add("observer", observer),
    }),
  ],
};
