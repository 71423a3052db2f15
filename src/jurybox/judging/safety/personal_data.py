"""Personal data and secrets, known by their shape and, where they have one, their check digit."""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

# Reserved for documentation (RFC 2606, RFC 6761), and the usual stand-ins.
_PLACEHOLDER_DOMAIN = re.compile(
    r"(?:^|\.)(?:example(?:\.\w{2,6})?|test|invalid|localhost|local|domain\.com"
    r"|your-?(?:domain|company)\.\w{2,6})$"
)
# Mailboxes of an office, not of a person; `git@` is how repositories are addressed.
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
# The registry of ISO 13616, without countries that few texts name.
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


def personal_data(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each piece of personal data starts and ends, kind by kind.

    No denial counts here: a secret in a sentence that denies it is a secret all the same.
    """
    for hint, shapes in SHAPES:
        if hint(text):
            for shape in shapes:
                for match in shape.pattern.finditer(text):
                    if size := shape.length(match[0]):
                        yield match.start(), match.start() + size


def _address(text: str) -> int:
    name, _, domain = text.lower().rpartition("@")
    impersonal = _PLACEHOLDER_DOMAIN.search(domain) or _ROLE.fullmatch(name)
    return 0 if impersonal else len(text)


def _phone(text: str) -> int:
    digits = _digits(text)
    possible = _SHORTEST_PHONE <= len(digits) <= _LONGEST_PHONE
    return len(text) if possible and not _FICTION_OR_SERVICE.search(digits) else 0


def _card(text: str) -> int:
    """Check the issuer with its length, then the check digit (Luhn, ISO/IEC 7812-1)."""
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


class Shape(NamedTuple):
    """What one kind of personal data looks like."""

    pattern: re.Pattern[str]
    length: Callable[[str], int]
    """How much of a match is personal data; 0 where it only looks like it."""


def _has_at(text: str) -> bool:
    return "@" in text


# A phone or card number is at least nine digits with marks between them; an IBAN begins "DE89".
_has_number = re.compile(r"\d(?:[\d ().-]{8}|(?<=[A-Z]{2}\d)\d)").search


_KEY_STARTS: Final = (
    *("sk-", "AKIA", "ASIA", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-"),
    *("k_live_", "AIza", "xox", "eyJ", "-----BEGIN "),
)


def _has_key_start(text: str) -> bool:
    for start in _KEY_STARTS:  # noqa: SIM110 - five times as fast as `any`
        if start in text:
            return True
    return False


# A shape begins only where no character of its kind stands before it: a long run is read once.
_EMAIL_ADDRESS = Shape(
    re.compile(
        r"(?<![\w.%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}"
        r"\.[A-Za-z]{2,24}(?![\w-])"
    ),
    _address,
)
# With a country code; or North American, with brackets or one kind of separator.
_PHONE_NUMBER = Shape(
    re.compile(
        r"(?<![\w.+/-])(?:\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}"
        r"(?:[ .-]\d{2,8}){1,4}|\+[1-9]\d{9,14}|(?:1[ .-])?(?:\([2-9]\d\d\) ?[2-9]\d\d[.-]\d{4}"
        r"|[2-9]\d\d([.-])[2-9]\d\d\1\d{4}))(?![\w-]|\.\d)"
    ),
    _phone,
)
_BANK_CARD = Shape(
    re.compile(
        r"(?<![\w.-])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}|\d{4}([ -])\d{6}\2\d{4,5})"
        r"(?![\w-]|\.\d)"
    ),
    _card,
)
# Those that the office never issues are left out.
_SOCIAL_SECURITY_NUMBER = Shape(
    re.compile(r"(?<![\w.-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-]|\.\d)"), len
)
_IBAN = Shape(
    re.compile(r"(?<!\w)[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?"), _account
)
# The prefixes that services give to their keys, so that they can be found like this.
_API_KEY = Shape(
    re.compile(
        r"(?<![\w-])(?:sk-(?:[A-Za-z0-9]{2,10}-){0,3}[A-Za-z0-9_]{16}[\w-]*"
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)|gh[opsur]_\w{20,}|github_pat_\w{20,}"
        r"|glpat-[\w-]{20,}|[sr]k_live_\w{16,}|AIza[\w-]{35}|xox[abeprs]-[\w-]{10,}"
        r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*)"
    ),
    _secret,
)
# With the key itself: a quote of the first line must not show the second.
_PRIVATE_KEY = Shape(
    re.compile(
        r"-----BEGIN (?:[A-Z]{1,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\]*"
        r"(?:-----END (?:[A-Z]{1,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?"
    ),
    len,
)

SHAPES: Final[tuple[tuple[Callable[[str], object], tuple[Shape, ...]], ...]] = (
    (_has_at, (_EMAIL_ADDRESS,)),
    (_has_number, (_PHONE_NUMBER, _BANK_CARD, _SOCIAL_SECURITY_NUMBER, _IBAN)),
    (_has_key_start, (_API_KEY, _PRIVATE_KEY)),
)
"""The shapes, by what a text with any of them has; most texts have none, and are done at once."""
