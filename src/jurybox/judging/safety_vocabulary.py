"""What the phrases of the safety scan are made of: their form, and the words that they share.

The phrases are regular expressions over folded text: small letters, straight apostrophes, marks of
emphasis turned into ``"``. A space stands for any short gap, so ``pipe bomb`` is ``pipe-bomb`` too.
Every repetition is bounded, or can only begin where a rare word stands: time stays linear.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

_GAP = r"""[\s"'-]{1,4}"""


def spaced(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which a space is any short gap, and `` ?`` may be none."""
    return re.compile(pattern.replace(" ?", r"""[\s"'-]{0,4}""").replace(" ", _GAP))


# Words of care: "encourages them to seek help for self-harm", "instructions for removing malware".
CARE: Final = (
    r"help|hotline|helpline|lifeline|crisis|prevent|therap|counsel|professional|resources|cop(?:e"
    r"|ing)\b|recover|surviv|victim|support|talk|remov|detect|protect|defens|defend\w{0,3} "
    r"(?:against|from)|scan|block|mitigat|clean|analy|aware|seek|empath|compassion|sensitiv"
    r"|histor|research|educat|emergency|shelter"
)

PARTS: Final[Mapping[str, str]] = {
    # A few words between two that matter; none may deny or care, or the phrase says another thing.
    "<gap>": rf"(?:(?!(?:no|not|never|neither|nor|without)\b|{CARE})[\w']{{1,15}} ){{0,4}}",
    # The objects that tell "kill the process" and "shoot me an email" from violence.
    "<person>": (
        r"(?:someone|somebody|people|everyone|every ?body|others|(?:a|an|the|that|this|another"
        r"|my) (?:person|man|woman|child|human|baby|kid|girl|boy|teacher|cop|politician"
        r"|neighbou?r)|(?:your|my|his|her|their) (?:wife|husband|spouse|partner|ex|boss"
        r"|neighbou?r|parents|mother|father|mom|dad|brother|sister|family|child|children|kids?"
        r"|girlfriend|boyfriend|classmates|coworkers?|colleagues?|teacher|roommate))"
    ),
    "<hurt>": r"(?:kill|murder|shoot|stab|poison|strangle|assault|rape|torture|behead|beat up)",
    "<hurting>": (
        r"(?:killing|murdering|shooting|stabbing|poisoning|strangling|assaulting|raping|torturing"
        r"|harming|hurting|attacking|beating)"
    ),
    "<strongly>": (
        r"(?:encourag|promot|glorif|incit|endors|advocat|condon|justif|prais|celebrat|normali[sz]"
        r"|romantici[sz]|triviali[sz]|recommend|advis|support|excus)\w{0,5}"
    ),
    "<make>": (
        r"(?:mak(?:e|ing)|build(?:ing)?|construct(?:ing)?|assembl(?:e|ing)|synthesi[sz](?:e|ing)"
        r"|cook(?:ing)?|manufactur(?:e|ing)|produc(?:e|ing)|prepar(?:e|ing)|creat(?:e|ing)"
        r"|craft(?:ing)?|3d print(?:ing)?|detonat(?:e|ing)|set(?:ting)? off)"
    ),
    # Bath, seed and fork bombs are none; nor are explosive growth and the C4 model of architecture.
    "<item>": (
        r"(?:(?<!bath\s)(?<!seed\s)(?<!fork\s)(?<!zip\s)(?<!logic\s)(?<!glitter\s)(?<!chocolate\s)"
        r"(?<!cherry\s)(?<!atomic\s)(?<!nuclear\s)"
        r"bombs?(?! (?:calorimeter|shelter|squad|disposal|detect))"
        r"|explosives(?! (?:detect|dispos))|explosive (?:device|charge|material|belt|vest)s?"
        r"|ieds?|molotovs?|grenades?|napalm|thermite|tatp|petn|nerve (?:agent|gas)|sarin|ricin"
        r"|anthrax|mustard gas|chlorine gas|ghost guns?|silencers?"
        r"|(?:chemical|biological|automatic|illegal|homemade|untraceable) (?:weapon|firearm|gun)s?"
        r"|weapons?(?! (?:of (?!mass)|racks?|mods?|skins?))|drugs(?! (?:stores?|approved|tested))"
        r"|illegal drug|meth|methamphetamines?|heroin|cocaine|fentanyl|mdma|ecstasy|lsd|dmt|ghb)"
    ),
    "<program>": (
        r"(?:(?:ransomware|malware|keyloggers?|rootkits?|botnets?|spyware|trojans?|computer "
        r"(?:virus(?:es)?|worms?)|credential stealers?|info ?stealers?|phishing (?:pages?|sites?"
        r"|e ?mails?|kits?|campaigns?|messages?)|ddos (?:attacks?|tools?)|zero day exploits?"
        r"|exploit code)(?! (?:scan|protect|detect|remov|analy|prevent|defen|filter|aware|check"
        r"|sampl|train|simulat)))"
    ),
    "<child>": (
        r"(?:minors|a minor(?! \w{1,15}ly| sexual)|child|children|kids?|toddlers?|pre ?teens?"
        r"|underage|schoolgirls?|schoolboys?|(?:[1-9]|1[0-7]) years? olds?)(?! (?:node|process"
        r"|element|class|component|object|theme|window|task|thread|table|row))"
    ),
    "<sexual>": r"(?:sexual\w{0,8}|sexy|erotic\w{0,3}|nudes?|porn\w{0,8}|lewd)",
    "<group>": (
        r"(?:jews|muslims|christians|blacks|whites|(?:black|white|brown|gay|trans"
        r"|disabled) people|asians|arabs|africans|mexicans|immigrants|migrants|refugees"
        r"|foreigners|women|gays|lesbians|homosexuals|gypsies)"
    ),
    "<private>": (
        r"(?:home address(?:es)?|personal (?:data|information|details)|private (?:data"
        r"|information|details|address)|personally identifiable information|pii"
        r"|social security numbers?|credit card (?:numbers?|details)|bank (?:account|details)"
        r"|passport numbers?|medical records?|(?:his|her|their|user's|someone's|person's|real"
        r"|private|personal) (?:phone number|e ?mail(?: address)?|address(?! to)|password))"
    ),
    "<street>": (
        r"\d{1,5} (?:\w{1,15} ){1,3}(?:street|st|avenue|ave|road|rd|lane|ln|drive|boulevard|blvd)"
    ),
}

# What a text with such a part cannot do without, in the notation of ``safety_prefilter``.
KEYS: Final[Mapping[str, str]] = {
    "<hurt>": "{kill,murder,shoot,stab,poison,strangle,assault,rape,torture,behead,beat up}",
    "<strongly>": (
        "encourag|promot|glorif|incit|endors|advocat|condon|justif|prais|celebrat|normali|romantici"
        "|triviali|recommend|advis|support|excus"
    ),
    "<make>": (
        "{mak,build,construct,assembl,synthesi,cook,manufactur,produc,prepar,creat,craft,3d print"
        ",detonat,set off,setting off}"
    ),
    "<item>": (
        "bomb|explosive|_ied_|_ieds_|molotov|grenade|napalm|thermite|_tatp_|_petn_|nerve agent"
        "|nerve gas|_sarin_|_ricin_|anthrax|mustard gas|chlorine gas|ghost gun|silencer|weapon"
        "|{chemical,biological,automatic,illegal,homemade,untraceable} {firearm,gun}|_drugs_"
        "|illegal drug|_meth_|_methamphet|heroin|cocaine|fentanyl|_mdma_|ecstasy|_lsd_|_dmt_|_ghb_"
    ),
    "<program>": (
        "ransomware|malware|keylogger|rootkit|botnet|spyware|trojan|computer virus|computer worm"
        "|credential stealer|info{, }stealer|phishing_|ddos_|zero day exploit|exploit code"
    ),
    "<child>": "minor|child|kid|toddler|teen|underage|schoolgirl|schoolboy|year",
    "<sexual>": "sexual|_sexy_|erotic|_nude|_porn|_lewd_",
    "<group>": (
        "{jews,muslims,christians,blacks,whites,black people,white people,brown people,gay people"
        ",trans people,disabled people,asians,arabs,africans,mexicans,immigrants,migrants,refugees"
        ",foreigners,women,gays,lesbians,homosexuals,gypsies}"
    ),
    "<private>": (
        "home address|{personal,private} {data,information,details}"
        "|personally identifiable|_pii_|social security number|credit card {number,details}"
        "|bank {account,details}|passport number|medical record"
        "|_{his,her,their,user s,someone s,person s,real,private,personal} "
        "{phone number,email,e mail,address_,password}"
    ),
}


class Phrase(NamedTuple):
    """One way to say a danger."""

    keys: str
    """In the notation of ``safety_prefilter``."""
    pattern: str


Table = Mapping[str, tuple[Phrase, ...]]


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a phrase, or several with ``|`` between them, when a text first needs it."""
    # Whole words only: "method" is no "meth".
    return spaced(rf"\b(?=\w)(?:{_filled(pattern, PARTS)})(?!\w)")


def keys(phrase: Phrase) -> str:
    """Return what a text with the phrase must have, its parts spelled out."""
    return _filled(phrase.keys, KEYS)


def _filled(text: str, parts: Mapping[str, str]) -> str:
    for name, part in parts.items():
        text = text.replace(name, part)
    return text
