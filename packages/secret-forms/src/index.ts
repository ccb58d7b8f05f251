/** The forms in which a program repeats a secret, and the search for them. */
export { Automaton } from "./automaton.js";
export { formsOf, type PairedForm, pairedForms } from "./forms.js";
export { Occurrences, type Part } from "./occurrences.js";
