"""The words for units, currencies, months and numbers, and what they are worth."""

from typing import Final, NamedTuple


class Unit(NamedTuple):
    """What one of it is in the base unit of its dimension; units of a system convert exactly."""

    dimension: str
    factor: float
    system: str = ""
    offset: float = 0.0


def _table(dimension: str, system: str, words: dict[str, float]) -> dict[str, tuple[Unit, ...]]:
    return {
        word: (Unit(dimension, factor, system),)
        for names, factor in words.items()
        for word in names.split()
    }


POWERS: Final = ("length", "area", "volume")
"""What the first, second and third power of a length measure."""

_LITRE: Final = 0.001
_POUND: Final = 453.59237

UNITS: Final[dict[str, tuple[Unit, ...]]] = (
    _table(
        "length",
        "metric",
        {
            "mm mm2 mm3 millimetre millimetres millimeter millimeters": 0.001,
            "cm cm2 cm3 centimetre centimetres centimeter centimeters": 0.01,
            "m m2 m3 metre metres meter meters": 1.0,
            "km km2 km3 kilometre kilometres kilometer kilometers": 1000.0,
        },
    )
    | _table(
        "length",
        "imperial",
        {
            "in inch inches": 0.0254,
            "ft foot feet": 0.3048,
            "yd yard yards": 0.9144,
            "mi mile miles": 1609.344,
        },
    )
    | _table(
        "volume",
        "metric",
        {
            "ml millilitre millilitres milliliter milliliters": 0.001 * _LITRE,
            "cl centilitre centilitres": 0.01 * _LITRE,
            "l litre litres liter liters": _LITRE,
        },
    )
    | _table(
        "mass",
        "metric",
        {
            "mg milligram milligrams": 0.001,
            "g gram grams gramme grammes": 1.0,
            "kg kilo kilos kilogram kilograms kilogramme kilogrammes": 1000.0,
            "tonne tonnes": 1e6,
        },
    )
    | _table("mass", "imperial", {"oz ounce ounces": _POUND / 16, "lb lbs": _POUND})
    | _table("speed", "metric", {"kmh kph": 1 / 3.6})
    | _table("speed", "imperial", {"mph": 0.44704})
    | _table(
        "time",
        "",
        {
            "ms millisecond milliseconds": 0.001,
            "s sec secs second seconds": 1.0,
            "min mins minute minutes": 60.0,
            "h hr hrs hour hours": 3600.0,
            "day days": 86_400.0,
            "week weeks": 604_800.0,
            "fortnight": 1_209_600.0,
        },
    )
    | _table(
        "months",
        "",
        {
            "month months": 1.0,
            "year years": 12.0,
            "decade decades": 120.0,
            "century centuries": 1200.0,
        },
    )
    | _table("%", "", {"% percent per": 1.0})
    | _table("EUR", "", {"\u20ac eur euro euros": 1.0, "cents": 0.01})
    | _table("USD", "", {"$ usd dollar dollars": 1.0})
    | _table("GBP", "", {"\u00a3 gbp": 1.0})
    | _table("JPY", "", {"\u00a5 jpy yen": 1.0})
    | _table("INR", "", {"\u20b9 inr rupee rupees": 1.0})
    | _table("CHF", "", {"chf franc francs": 1.0})
)
# A pound is money or a weight; the other text may tell which.
UNITS["pound"] = UNITS["pounds"] = (*UNITS["lb"], *UNITS["gbp"])
# So are cents those of either coin.
UNITS["cent"] = UNITS["cents"] = (Unit("EUR", 0.01), Unit("USD", 0.01))

_CELSIUS: Final = Unit("temperature", 1.0, "metric")
_FAHRENHEIT: Final = Unit("temperature", 5 / 9, "imperial", -160 / 9)
_KELVIN: Final = Unit("temperature", 1.0, "metric", -273.15)
DEGREES: Final = {
    "c": _CELSIUS,
    "celsius": _CELSIUS,
    "centigrade": _CELSIUS,
    "f": _FAHRENHEIT,
    "fahrenheit": _FAHRENHEIT,
    "k": _KELVIN,
    "kelvin": _KELVIN,
}
UNITS["celsius"] = (_CELSIUS,)
UNITS["fahrenheit"] = (_FAHRENHEIT,)
UNITS["kelvin"] = (_KELVIN,)

CURRENCIES: Final = {
    sign: UNITS[sign][0].dimension for sign in ("\u20ac", "$", "\u00a3", "\u00a5", "\u20b9")
} | {sign: UNITS[sign][0].dimension for sign in ("eur", "usd", "gbp", "jpy", "inr", "chf")}

_MONTHS: Final = (
    "january february march april may june july august september october november december"
)
MONTHS: Final = {name: number for number, name in enumerate(_MONTHS.split(), start=1)} | {
    name[:3]: number for number, name in enumerate(_MONTHS.split(), start=1)
}
MONTHS["sept"] = 9

_SMALL: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
SMALL: Final = {word: float(number) for number, word in enumerate(_SMALL.split())}
TENS: Final = {word: 10.0 * number for number, word in enumerate(_TENS.split(), start=2)}
TIMES: Final = {"once": 1.0, "twice": 2.0}
SCALES: Final = {
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "mn": 1e6,
    "million": 1e6,
    "millions": 1e6,
    "bn": 1e9,
    "billion": 1e9,
    "billions": 1e9,
    "trillion": 1e12,
}
PARTS: Final = {
    "half": 2.0,
    "halves": 2.0,
    "third": 3.0,
    "thirds": 3.0,
    "quarter": 4.0,
    "quarters": 4.0,
    "fifth": 5.0,
    "fifths": 5.0,
    "tenth": 10.0,
    "tenths": 10.0,
}
_ORDINALS: Final = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
    " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
ORDINALS: Final = {word: float(number) for number, word in enumerate(_ORDINALS.split(), start=1)}
