"""What the safety scan looks for: the phrases of a file, and the shapes of personal data.

``phrases.yaml`` explains its notation. Personal data and secrets are recognized by their shape
and, if they have one, their check digit.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, Literal, NamedTuple

import msgspec

_NAME = re.compile(r"<([a-z]+)>")
_NOT_BEFORE = re.compile(r"\(\?<!(?:\(([^()]*)\))?([^()]*)\)")
_BRACKET = re.compile(r"(?<!\\)\((?!\?)")

ClauseKind = Literal[
    "idiom",
    "stop",
    "turn",
    "join",
    "weak",
    "denial",
    "refusal",
    "neutral",
    "care",
    "promote",
    "present",
    "explain",
    "means",
    "danger",
]


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of danger; ``alarms`` count only in judges' texts, ``topics`` only if promoted."""

    phrases: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    explaining: bool = False


class After(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words after a danger that promote or deny it."""

    promoted: tuple[str, ...]
    denied: tuple[str, ...]
    refused: tuple[str, ...]
    relented: tuple[str, ...]


class Concerns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words with which a judge states that it has no concern."""

    denying: str
    praising: str
    plain: str


class Injections(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a text may address a judge: regular expressions (``marks``) and phrases."""

    marks: tuple[str, ...]
    phrases: tuple[str, ...]


class Phrasebook(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The contents of ``phrases.yaml``, as written."""

    parts: dict[str, str]
    categories: dict[str, Category]
    clauses: dict[ClauseKind, tuple[str, ...]]
    after: After
    concerns: Concerns
    injections: Injections

    @cached_property
    def _patterns(self) -> dict[str, str]:
        """The parts as regular expressions; each may use the parts above it."""
        patterns: dict[str, str] = {}
        for name, part in self.parts.items():
            patterns[name] = f"(?:{_pattern(part, patterns)})"
        return patterns

    def pattern(self, *entries: str) -> str:
        """Return a regular expression that matches any of the entries."""
        return "|".join(_pattern(entry, self._patterns) for entry in entries)

    def words(self, entries: Sequence[str]) -> re.Pattern[str]:
        """Return a pattern that finds phrases as entire words: "method" doesn't match "meth"."""
        return re.compile(rf"\b(?=\w)(?:{self.pattern(*entries)})(?!\w)")

    def word_ends(self, entries: Sequence[str]) -> re.Pattern[str]:
        """Return a pattern three times as fast as `words`; it may match from inside a word."""
        return re.compile(rf"(?:{self.pattern(*entries)})(?!\w)")


def read_phrasebook(source: str) -> Phrasebook:
    """Read a phrasebook from YAML text."""
    return msgspec.yaml.decode(source, type=Phrasebook)


def tidy(entry: str) -> str:
    """Return an entry without insignificant spaces."""
    return re.sub(r" *\| *", "|", entry)


def _pattern(entry: str, parts: dict[str, str]) -> str:
    text = _NOT_BEFORE.sub(_none_before, tidy(entry))
    text = _BRACKET.sub("(?:", text)
    text = text.replace(" ?", r"""[\s"'-]{0,4}""").replace(" ", r"""[\s"'-]{1,4}""")
    return _NAME.sub(lambda name: parts[name[1]], text)


def _none_before(choice: re.Match[str]) -> str:
    """Return one lookbehind per word, because Python allows only fixed lengths."""
    words, rest = choice.groups(default="")
    return "".join(rf"(?<!{word}{rest})" for word in words.split("|")).replace(" ", r"\s")


# Reserved for documentation (RFC 2606, RFC 6761), and other common placeholders.
_PLACEHOLDER_DOMAIN = re.compile(
    r"(?:^|\.)(?:example(?:\.\w{2,6})?|test|invalid|localhost|local|domain\.com"
    r"|your-?(?:domain|company)\.\w{2,6})$"
)
# Mailboxes of an office, not of a person; `git@` is for repositories.
_ROLE = re.compile(
    r"abuse|admin|contact|git|hello|help|info|legal|no-?reply|office|postmaster|press|privacy|sales"
    r"|security|service|support|webmaster"
)
# Set aside for fiction (555-01xx, Ofcom's ranges); free-phone numbers belong to services.
_FICTION_OR_SERVICE = re.compile(
    r"55501\d\d$|^447700900\d{3}$|^442079460\d{3}$|^1?8(?:00|33|44|55|66|77|88)\d{7}$"
)
_PLACEHOLDER_SECRET = re.compile(r"(?i)example|your|xxxx|placeholder|0000000")
# Visa, Mastercard, American Express, Diners Club, Discover, JCB, UnionPay.
_CARD = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[068]\d{12}"
    r"|6(?:011\d\d|4[4-9]\d{3}|5\d{4})\d{10}|35\d{14}|62\d{14,17}"
)
# The registry of ISO 13616, without countries that texts rarely mention.
_IBAN_LENGTHS: Final = {
    country: int(length)
    for country, length in re.findall(
        r"([A-Z]{2})(\d\d)",
        "AD24 AE23 AL28 AT20 BA20 BE16 BG22 CH21 CY28 CZ24 DE22 DK18 EE20 ES24 FI18 FR27 GB22 GI23"
        "GR27 HR21 HU28 IE22 IL23 IS26 IT27 LI21 LT20 LU20 LV21 MC27 ME22 MK19 MT31 NL18 NO15 PL28"
        "PT25 RO24 RS22 SA24 SE24 SI19 SK24 SM27 TR26 UA29",
    )
}
_SHORTEST_PHONE, _LONGEST_PHONE = 9, 15  # E.164 allows no more


def _address(text: str) -> int:
    name, _, domain = text.lower().rpartition("@")
    impersonal = _PLACEHOLDER_DOMAIN.search(domain) or _ROLE.fullmatch(name)
    return 0 if impersonal else len(text)


def _phone(text: str) -> int:
    digits = _digits(text)
    possible = _SHORTEST_PHONE <= len(digits) <= _LONGEST_PHONE
    return len(text) if possible and not _FICTION_OR_SERVICE.search(digits) else 0


def _card(text: str) -> int:
    """Check the issuer and its number length, then the check digit (Luhn, ISO/IEC 7812-1)."""
    digits = _digits(text)
    if not _CARD.fullmatch(digits):
        return 0
    weighed = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return 0 if sum(number // 10 + number % 10 for number in weighed) % 10 else len(text)


def _account(text: str) -> int:
    """Check the length for the country and the check digits (ISO 13616: 1 modulo 97).

    The length decides where an IBAN ends, because words in capitals may follow it.
    """
    length = _IBAN_LENGTHS.get(text[:2], 0)
    places = [place for place, char in enumerate(text) if char != " "][:length]
    if not length or len(places) < length:
        return 0
    account = "".join(text[place] for place in places)
    number = int("".join(str(int(char, 36)) for char in account[4:] + account[:4]))
    return places[-1] + 1 if number % 97 == 1 else 0


def _secret(text: str) -> int:
    return 0 if _PLACEHOLDER_SECRET.search(text) else len(text)


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


class SecretShape(NamedTuple):
    """The pattern of one kind of personal data."""

    pattern: re.Pattern[str]
    length: Callable[[str], int]
    """Returns how much of the match is personal data; 0 for a false match."""


# A match can't begin inside a run of its own characters, so long runs are read only once.
EMAIL_ADDRESS = SecretShape(
    re.compile(
        r"(?<![\w.%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}"
        r"\.[A-Za-z]{2,24}(?![\w-])"
    ),
    _address,
)
# With a country code; or North American, with brackets or one kind of separator.
PHONE_NUMBER = SecretShape(
    re.compile(
        r"(?<![\w.+/-])(?:\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}"
        r"(?:[ .-]\d{2,8}){1,4}|\+[1-9]\d{9,14}|(?:1[ .-])?(?:\([2-9]\d\d\) ?[2-9]\d\d[.-]\d{4}"
        r"|[2-9]\d\d([.-])[2-9]\d\d\1\d{4}))(?![\w-]|\.\d)"
    ),
    _phone,
)
BANK_CARD = SecretShape(
    re.compile(
        r"(?<![\w.-])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}|\d{4}([ -])\d{6}\2\d{4,5})"
        r"(?![\w-]|\.\d)"
    ),
    _card,
)
# Numbers that are never issued are left out.
SOCIAL_SECURITY_NUMBER = SecretShape(
    re.compile(r"(?<![\w.-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-]|\.\d)"), len
)
IBAN = SecretShape(
    re.compile(r"(?<!\w)[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?"), _account
)
# The prefixes of services' keys, which exist so that scanners find them.
API_KEY = SecretShape(
    re.compile(
        r"(?<![\w-])(?:sk-(?:[A-Za-z0-9]{2,10}-){0,3}[A-Za-z0-9_]{16}[\w-]*"
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)|gh[opsur]_\w{20,}|github_pat_\w{20,}"
        r"|glpat-[\w-]{20,}|[sr]k_live_\w{16,}|AIza[\w-]{35}|xox[abeprs]-[\w-]{10,}"
        r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*)"
    ),
    _secret,
)
# Matches the whole key, not only its first line, so that a quote masks all of it.
PRIVATE_KEY = SecretShape(
    re.compile(
        r"-----BEGIN (?:[A-Z]{1,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\]*"
        r"(?:-----END (?:[A-Z]{1,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?"
    ),
    len,
)
