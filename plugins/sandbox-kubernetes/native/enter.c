/*
 * Takes the steps of the table behind the program, and becomes the command in its arguments. Each step is a system call that must
 * succeed: where one fails, the program prints the step's line and ends with the code 125, and the command never runs.
 * `stepsProgram` in src/enter.ts writes the table.
 */
#include "start.h"

struct step {
  long call; /* The number of a system call, END or USER_NAMESPACE_TEST. */
  long arguments[5];
  const char *failure;
  long failure_bytes;
};
enum { END = -1, USER_NAMESPACE_TEST = -2 };
/* In place of a first argument: the result of the call before. In place of a second one: the address of the buffer. */
enum { LAST_RESULT = -2, BUFFER = -3 };
enum { FAILED = 125 };
extern const struct step table[];

static void fail(const struct step *step) __attribute__((noreturn));
static void fail(const struct step *step) {
  system_call(CALL_WRITE, STANDARD_OUTPUT, (long)step->failure, step->failure_bytes, 0, 0, 0);
  exit_with(FAILED);
}

/*
 * Whether /proc/self/uid_map, which an earlier step read, says that the first user here is root of the node. The kernel prints
 * "%10u %10u %10u": the second number, the user outside, ends at byte 20. It has one digit where byte 19 is a space, and no
 * namespace of a pod begins at a user below 10.
 */
enum { BEFORE_LAST_DIGIT = 19 };
static int is_root_of_node(const char *uid_map) { return uid_map[BEFORE_LAST_DIGIT] == ' '; }

void begin(long *stack) {
  const long argument_count = stack[0];
  char **arguments = (char **)(stack + 1);
  char **environment = arguments + argument_count + 1;
  char buffer[128];
  buffer[BEFORE_LAST_DIGIT] = 0;
  long last_result = 0;
  const struct step *step = table;
  for (; step->call != END; step++) {
    if (step->call == USER_NAMESPACE_TEST) {
      if (is_root_of_node(buffer)) fail(step);
      continue;
    }
    const long *of = step->arguments;
    const long first = of[0] == LAST_RESULT ? last_result : of[0];
    const long second = of[1] == BUFFER ? (long)buffer : of[1];
    last_result = system_call(step->call, first, second, of[2], of[3], of[4], 0);
    if (last_result < 0) fail(step);
  }
  if (argument_count > 1)
    system_call(CALL_EXECVE, (long)arguments[1], (long)(arguments + 1), (long)environment, 0, 0, 0);
  fail(step);
}
