"""What expressions may use, with an example of each that is true. Tests hold the examples to the engines."""

from __future__ import annotations

from attrs import frozen


@frozen
class Offered:
    """An operator, function or macro. ``is_portable``: both CEL engines know it, so a portable rule may use it.

    ``example`` is an expression without variables that comes to true.
    """

    written: str
    doc: str
    example: str
    is_portable: bool = True


OFFERED = (
    Offered(
        "a && b, a || b, !a",
        "And, or, not. An error on one side does not count where the other decides.",
        "!(1 > 2) && (1 > 2 || 2 > 1)",
    ),
    Offered("c ? a : b", "a where c is true, else b.", "(1 < 2 ? 'a' : 'b') == 'a'"),
    Offered("==, !=, <, <=, >, >=", "Comparison of two values of one type: write 5.0 beside a double.", "2.5 < 3.0"),
    Offered(
        "+, -, *, /, %", "Arithmetic; int divided by int is cut off, % is for ints. + joins strings too.", "7 / 2 == 3"
    ),
    Offered("x in list, key in map", "Whether the list holds x, or the map the key.", "'b' in ['a', 'b']"),
    Offered("list[0], map['key']", "One element. One that is not there is an error.", "[5, 6][1] == 6"),
    Offered(
        "size(x)", "Elements of a list or map, characters of a string. In a plan, read its counts.", "size([1, 2]) == 2"
    ),
    Offered("list.all(x, p), list.exists(x, p)", "Whether p holds for all, or for any.", "[1, 2].all(x, x > 0)"),
    Offered("list.exists_one(x, p)", "Whether p holds for exactly one.", "[1, 2].exists_one(x, x > 1)"),
    Offered(
        "list.filter(x, p), list.map(x, t)",
        "The elements for which p holds; t of each.",
        "[1, 2].filter(x, x > 1) == [2]",
    ),
    Offered(
        "s.startsWith(t), s.endsWith(t), s.contains(t)",
        "Whether s begins with, ends with or holds t.",
        "'p5.48xlarge'.startsWith('p5.')",
    ),
    Offered(
        "s.matches(re)",
        "Whether a part of s is of the RE2 pattern; write ^ and $ for the whole.",
        "'g6e'.matches('^g[0-9]+e$')",
    ),
    Offered(
        "int(x), double(x), string(x)",
        "Conversions; an int beside a double needs one. To string an int only, where a rule is portable.",
        "double(2) * 1.5 == 3.0",
    ),
    Offered(
        "duration('1h30m')", "A length of time, in h, m and s: a day is 24h.", "duration('90m') == duration('1h30m')"
    ),
    Offered(
        "timestamp('…Z')",
        "A point in time. One less another is a duration.",
        "timestamp('2026-11-30T12:00:00Z') - timestamp('2026-11-30T11:00:00Z') == duration('1h')",
    ),
    Offered(
        "t.getHours(zone), t.getMinutes(zone), t.getSeconds(zone)",
        "Of a point in time, on the clock of an IANA zone. A calendar's window is safer: midnight is no seam to it.",
        "timestamp('2026-11-30T12:00:00Z').getHours('America/New_York') == 7",
    ),
    Offered(
        "t.getDayOfWeek(zone), t.getDayOfYear(zone)",
        "0 is Sunday, or the first day of January.",
        "timestamp('2026-11-30T12:00:00Z').getDayOfWeek('UTC') == 1",
    ),
    Offered(
        "t.getDate(zone), t.getDayOfMonth(zone), t.getMonth(zone), t.getFullYear(zone)",
        "The first day is 1 to getDate and 0 to getDayOfMonth; January is 0.",
        "timestamp('2026-11-30T12:00:00Z').getMonth('UTC') == 10",
    ),
    Offered(
        "s.lowerAscii(), s.upperAscii(), s.trim()",
        "Other spellings of a string.",
        "' Gold '.trim().lowerAscii() == 'gold'",
        is_portable=False,
    ),
    Offered(
        "s.split(t), list.join(t), s.replace(a, b), s.substring(i, j)",
        "Parts of strings.",
        "'g6e.xlarge'.split('.')[0] == 'g6e'",
        is_portable=False,
    ),
    Offered(
        "'…%s %d %.2f'.format([…])", "A text with values in it.", "'%.2f'.format([2.5]) == '2.50'", is_portable=False
    ),
    Offered(
        "math.least(a, b), math.greatest(a, b), math.ceil(x), math.floor(x)",
        "Of numbers of one type.",
        "math.least(3, 5) == 3",
        is_portable=False,
    ),
    Offered(
        "cel.bind(name, value, t)",
        "t with a name in it. A rule's variables do the same, and are portable.",
        "cel.bind(x, 2, x * x) == 4",
        is_portable=False,
    ),
    Offered(
        "map[?'key'].orValue(v)",
        "An entry of a map, or v where it is not there. Portable: 'key' in map ? map['key'] : v.",
        "{'a': 'b'}[?'tier'].orValue('none') == 'none'",
        is_portable=False,
    ),
    Offered(
        "map.all(k, v, p), map.exists(k, v, p)",
        "Over a map's entries, or over a list's places and elements.",
        "{'a': 1}.all(k, v, v > 0)",
        is_portable=False,
    ),
)
