/** What a newcomer may send. The demo agent has no model: it follows a script, one instruction a line. */
export const suggestions = [
  {
    title: "Book a train",
    about: "tools, a seat that you choose, a call that you allow",
    script: `think The user wants to go to Zurich. I compare the trains first.
say I look for trains from Bern to Zurich.
call find_trains {"from": "Bern", "to": "Zurich"}
say The IR 15 is the cheaper one. Where would you like to sit?
call choose_seat {"train": "IR 15"}
say I book it, if you allow it.
call book_train {"train": "IR 15", "euros": 29}
say Have a good journey!`,
  },
  {
    title: "Break a rule",
    about: "a denied tool, a closed network, a file out of reach",
    script: `say I try what I must not do.
call delete_bookings {}
run getent hosts example.com || echo "no name can be resolved"
run echo mine > /etc/ambit-was-here
say None of it worked.`,
  },
  {
    title: "Take your time",
    about: "stop it, or reload the page while it writes",
    script: `plan Count to ten; Say goodbye
say One.
sleep 800
${["Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"].map((word) => `say ${word}.\nsleep 800`).join("\n")}
say Goodbye.`,
  },
];
