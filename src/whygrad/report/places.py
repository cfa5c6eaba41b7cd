"""Turns the ledger's site ids into places that a report can show; each site is looked up once."""

from __future__ import annotations

from whygrad.ledger import Ledger
from whygrad.ledger.events import SiteId
from whygrad.report.parts import Place


class Places:
    """The places of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[SiteId, Place | None] = {}

    def at(self, site: SiteId | None) -> Place | None:
        """The place of a site; None where no line of the user's code was running."""
        if site is None:
            return None
        if site not in self._known:
            self._known[site] = self._look_up(site)
        return self._known[site]

    def _look_up(self, site: SiteId) -> Place | None:
        known = self._ledger.site(site)
        if known is None:
            return None
        return Place(
            path=known.path,
            line=known.line,
            column=known.column,
            end_line=known.end_line,
            end_column=known.end_column,
            function=known.function,
            code=known.code,
            where=self._ledger.where(site),
        )
