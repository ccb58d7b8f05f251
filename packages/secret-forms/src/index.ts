/** The forms in which a program repeats a secret, and the search for them. */

export { formsOf, type PairedForm, pairedForms } from "./forms.js";
export { Automaton, Occurrences, type Part } from "./search.js";
