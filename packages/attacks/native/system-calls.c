/*
 * Makes every system call of the table behind the program and writes each result to standard output, in 8 bytes: -errno, or 0
 * and above. `systemCallProgram` in src/system-calls/calls.ts writes the table.
 */
#include "start.h"

/* A row whose number is END ends the table. */
struct call {
  long number;
  long arguments[6];
};
enum { END = -1 };
extern const struct call table[];

void begin(long *stack) {
  (void)stack;
  for (const struct call *call = table; call->number != END; call++) {
    const long *of = call->arguments;
    long result = system_call(call->number, of[0], of[1], of[2], of[3], of[4], of[5]);
    system_call(CALL_WRITE, STANDARD_OUTPUT, (long)&result, sizeof result, 0, 0, 0);
  }
  exit_with(0);
}
