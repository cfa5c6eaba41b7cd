"""One module a form: what was checked, for a person, a machine, a test report, a code host."""
