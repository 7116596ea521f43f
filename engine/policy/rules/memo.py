"""What requirement rules answered before, kept from pass to pass: a world that stays the same is asked about once.

An answer follows from the rules, from what is sold, and from the values at the paths that a rule reads. The first two
make a book, the third a key in it. Rules that read the time are not kept here.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from engine.model.catalog import Catalog
from engine.policy.cel.port import Bound
from engine.policy.facts.schema import INSTANCE_TYPE
from engine.policy.rules.asked import Opinion
from engine.policy.rules.compiled import Bundle
from engine.policy.rules.ruling import TypeAt
from engine.policy.rules.types_at import SoldType, sold_types

_MOST_BOOKS = 8
# About 50 MB of one environment.
_MOST_ANSWERS = 500_000


Shelf = dict[Hashable, Opinion]


class Book:
    """All that is known of one bundle beside one catalog."""

    def __init__(self, bundle: Bundle, catalog: Catalog, sold: Mapping[TypeAt, SoldType]) -> None:
        self.bundle = bundle
        self.catalog = catalog
        self.sold = sold
        self._shelves: dict[Hashable, Shelf] = {}
        self._answers = 0
        self._bound: dict[TypeAt, Bound] = {}

    def bound(self, type_at: TypeAt) -> Bound:
        """A type that is sold, as the engine takes it in."""
        if type_at not in self._bound:
            self._bound[type_at] = self.bundle.engine.bind(INSTANCE_TYPE, self.sold[type_at].facts)
        return self._bound[type_at]

    def shelf(self, rule: str, types: tuple[TypeAt, ...]) -> Shelf:
        """Where a rule's opinions on these types are kept, by what it reads."""
        return self._shelves.setdefault((rule, types), {})

    def count(self, answers: int) -> None:
        """So many more are kept. Starts afresh when that is too much: a steady world has far fewer."""
        self._answers += answers
        if self._answers > _MOST_ANSWERS:
            self._shelves, self._answers = {}, answers


# The newest last, by digest of policy and catalog, and environment.
_BOOKS: dict[tuple[str, str, str], Book] = {}


def book_of(bundle: Bundle, policy_digest: str, catalog: Catalog, environment: str) -> Book:
    """The book that was kept, or an empty one. A digest only finds it: what it was made from is compared."""
    name = (policy_digest, catalog.digest, environment)
    kept = _BOOKS.pop(name, None)
    if kept is None or kept.bundle is not bundle or kept.catalog is not catalog:
        sold = sold_types(catalog)
        if kept is None or kept.bundle is not bundle or kept.sold != sold:
            kept = Book(bundle, catalog, sold)
        kept.catalog = catalog
    _BOOKS[name] = kept
    if len(_BOOKS) > _MOST_BOOKS:
        del _BOOKS[next(iter(_BOOKS))]
    return kept


def forget() -> None:
    """Drops all books, for measurements that begin cold."""
    _BOOKS.clear()
