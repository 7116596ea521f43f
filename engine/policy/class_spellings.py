"""Older and odd spellings in EC2NodeClasses, made modern, each with a warning that names both."""

from __future__ import annotations

from collections.abc import Mapping

from engine.policy.findings import ObjectFindings, closest
from engine.policy.located import Fields, Items, Located, Path, Place, Scalar, fields_at, find, text_at
from engine.policy.pool_spellings import OLD, V1, V1BETA1

_SPEC: Path = ("spec",)
_FAMILY: Path = ("spec", "amiFamily")
_ALIAS_BY_FAMILY = {"AL2023": "al2023@latest", "AL2": "al2@latest"}
# The plain maps of Karpenter's first node templates, their modern lists, and the fields that a term of each has.
_SELECTORS = {
    "subnetSelector": ("subnetSelectorTerms", ("id", "tags")),
    "securityGroupSelector": ("securityGroupSelectorTerms", ("id", "name", "tags")),
    "amiSelector": ("amiSelectorTerms", ("id", "name", "alias", "owner", "ssmParameter", "tags")),
}
# Those maps' own keys beside tags, and the field of a term that each became.
_PLAIN_KEYS: Mapping[str, str] = {
    "aws-ids": "id",
    "aws::ids": "id",
    "aws::name": "name",
    "aws::owners": "owner",
    "aws::ssm": "ssmParameter",
}


def modernise_node_class(findings: ObjectFindings, version: str) -> None:
    """Rewrites the tree in place to the shape of karpenter.k8s.aws/v1."""
    if version == V1BETA1:
        message = "apiVersion karpenter.k8s.aws/v1beta1 is the older form of karpenter.k8s.aws/v1; it is read as such"
        findings.warning(("apiVersion",), "old-api-version", message, "write apiVersion: karpenter.k8s.aws/v1")
    spec = fields_at(findings.root, _SPEC)
    if spec is None:
        return
    for old, (modern, fields) in _SELECTORS.items():
        if old in spec.fields:
            _plain_selector(spec, old, modern, fields, findings)
        _bare_terms(spec, modern, fields, findings)
    _implied_image(spec, version, findings)


def _plain_selector(spec: Fields, old: str, modern: str, fields: tuple[str, ...], findings: ObjectFindings) -> None:
    path = (*_SPEC, old)
    message = f"{old} is the older spelling of {modern}; it is read as a list of one term with these tags"
    findings.warning_at_key(path, OLD, message, f"write {modern}: [{{tags: {{…}}}}]")
    if modern in spec.fields:
        conflict = f"{modern} is here too; only one of them can be meant"
        findings.error_at_key(path, "contradiction", conflict, f"remove {old}")
    value, place = spec.take(old) or (Fields(Place(1, 1)), Place(1, 1))
    if modern in spec.fields:
        return
    if isinstance(value, Fields):
        value = value if set(value.fields) & set(fields) else Items(value.place, _terms_of_map(value))
    spec.put(modern, value, place)


def _terms_of_map(selector: Fields) -> list[Located]:
    """A plain map as terms. A value with commas meant any of them, so it becomes a term for each."""
    terms: list[Fields] = [Fields(selector.place)]
    for key, value in selector.fields.items():
        place = selector.key_places[key]
        values = value.text.split(",") if isinstance(value, Scalar) else [""]
        grown = []
        for text in values:
            part = Scalar(value.place, text.strip(), text.strip()) if isinstance(value, Scalar) else value
            grown += [_with(term, key, part, place) for term in terms]
        terms = grown[:100]
    return list(terms)


def _with(term: Fields, key: str, value: Located, place: Place) -> Fields:
    """A copy of the term that demands one thing more."""
    extended = Fields(term.place, dict(term.fields), dict(term.key_places))
    if key in _PLAIN_KEYS:
        extended.put(_PLAIN_KEYS[key], value, place)
        return extended
    tags = extended.fields.get("tags")
    more = Fields(tags.place, dict(tags.fields), dict(tags.key_places)) if isinstance(tags, Fields) else Fields(place)
    more.put(key, value, place)
    extended.put("tags", more, place)
    return extended


def _bare_terms(spec: Fields, name: str, fields: tuple[str, ...], findings: ObjectFindings) -> None:
    """Terms written as one map instead of a list of them, and terms whose tags stand in the list item itself."""
    terms = spec.fields.get(name)
    if isinstance(terms, Fields):
        message = f"{name} is a list of terms; this map is read as its only term"
        findings.warning((*_SPEC, name), OLD, message, "begin the term with a dash")
        terms = spec.fields[name] = Items(terms.place, [terms])
    if not isinstance(terms, Items):
        return
    for index, term in enumerate(terms.items):
        if isinstance(term, Fields) and term.fields and _is_bare(term, fields):
            message = "tags stand in the list item itself; they are read as the term's tags"
            findings.warning((*_SPEC, name, index), OLD, message, "write them under tags:")
            terms.items[index] = Fields(term.place, {"tags": term}, {"tags": term.place})


def _is_bare(term: Fields, fields: tuple[str, ...]) -> bool:
    """Whether no key of the term is a field of terms, nor looks like one misspelt."""
    return not any(key in fields or closest(key, fields) or key in ("id", "name") for key in term.fields)


def _implied_image(spec: Fields, version: str, findings: ObjectFindings) -> None:
    """An AMI family without terms: v1beta1 meant its newest image, and so do those who leave the terms out of v1."""
    alias = _ALIAS_BY_FAMILY.get(text_at(findings.root, _FAMILY) or "")
    terms = find(findings.root, (*_SPEC, "amiSelectorTerms"))
    is_absent = terms is None or (isinstance(terms, Scalar) and terms.value is None)
    if alias is None or not is_absent:
        return
    if version == V1:
        message = f"amiFamily without amiSelectorTerms, which v1 requires; {alias} is used"
        findings.warning_at_key(_FAMILY, OLD, message, f"write amiSelectorTerms: [{{alias: {alias}}}]")
    place = spec.fields["amiFamily"].place
    term = Fields(place, {"alias": Scalar(place, alias, alias)}, {"alias": place})
    spec.put("amiSelectorTerms", Items(place, [term]), place)
