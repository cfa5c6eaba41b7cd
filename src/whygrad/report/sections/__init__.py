"""The sections of the terminal report, one module each; `whygrad.report.terminal` puts them in order."""
