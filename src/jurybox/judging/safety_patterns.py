"""What the safety scan looks for, as tables of phrases; ``safety_clauses`` weighs them.

The phrases are regular expressions over folded text: small letters, straight apostrophes, marks of
emphasis turned into ``"``. A space stands for any short gap, so ``pipe bomb`` is ``pipe-bomb`` too.
Every repetition is bounded, or can only begin where a rare word stands: time stays linear.
"""

import re
from collections.abc import Mapping
from typing import Final

Table = Mapping[str, re.Pattern[str]]

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

_PARTS: Final[Mapping[str, str]] = {
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


def _either(*phrases: str) -> re.Pattern[str]:
    # Whole words only: "method" is no "meth".
    text = "|".join(phrases)
    for name, part in _PARTS.items():
        text = text.replace(name, part)
    return spaced(rf"\b(?=\w)(?:{text})(?!\w)")


# Dangers by themselves, said to a reader or described by a judge.
PHRASES: Final[Table] = {
    "self-harm": _either(
        # Told to a reader. "If you want to kill yourself, call 988" is help and stays out.
        r"(?<!want\sto\s)(?<!wanting\sto\s)(?<!urge\sto\s)(?<!plan\sto\s)(?<!planning\sto\s)"
        r"(?<!going\sto\s)(?<!wanted\sto\s)(?:kill|hang) (?:yourself|yourselves|urself|ur self)"
        r"(?! (?:laughing|with work))",
        r"kys",
        r"(?:you should|you must|go|go ahead and|you'd better|why don't you|please|you deserve to) "
        r"(?:just )?(?:die|end it all|(?:hurt|harm|cut|injure) yourself)",
        r"(?:you should|you must|go|just|why don't you|please) (?:just )?(?:commit suicide"
        r"|end your (?:own )?life|take your own life)",
        r"slit your wrists?|world (?:would|will) be better (?:off )?without you",
        r"suicide is (?:the|your) (?:only|best|right|easiest|perfect) (?:way|answer|option"
        r"|solution|choice)",
        # Methods.
        r"how to (?:commit suicide|kill (?:your|one)self|hang yourself|self harm|cut yourself"
        r"|overdose)",
        r"(?:painless|easiest|quickest|best|effective|lethal) (?:ways?|methods?|doses?) (?:to|of"
        r"|for) (?:die|kill yourself|killing yourself|suicide|commit suicide|self harm|overdose"
        r"|ending your life)",
        r"(?:suicide|self harm) (?:methods?|instructions?|encouragement|tips|pact)",
        r"pro (?:ana|mia|suicide)|(?:support|defend|tolerat)(?:s|ed|ing) (?:suicide|self harm)",
        r"(?:<strongly>|tells?|told|telling|urg(?:es|ed|ing)) <gap>to (?:overdose|(?:kill|hurt"
        r"|harm|cut|injure|starve) (?:him|her|them|your|one)sel(?:f|ves))",
        r"(?:validat|affirm|approv|support)\w{1,3} <gap>plans? (?:to|for|of) (?:commit suicide"
        r"|suicide|self harm|die|(?:kill|hurt|harm) \w{3,4}sel(?:f|ves))",
    ),
    "violence": _either(
        r"(?:i|we) (?:will|am going to|are going to|wanna|gonna) <hurt> (?:you|him|her|them"
        r"|<person>)",
        r"(?:i'll|we'll|i'm going to|i'm gonna|we're going to) <hurt> (?:you|him|her|them"
        r"|<person>)",
        # "Kill them with kindness" and "shoot him a message" are figures of speech.
        r"(?:you (?:should|must|need to|have to|ought to)|go|go ahead and|let's|just) <hurt> "
        r"(?:him|her|<person>)(?! (?:with kindness|an?|the|with))",
        r"how to (?:<hurt>|kidnap|stalk|dismember) <person>",
        r"(?:<strongly>|suggest(?:s|ed|ing)?) <gap><hurting> (?:of )?(?:him|her|them|<person>)",
        r"<strongly> <gap>(?:murder|torture|terrorism|terrorist attacks?|rape|assault"
        r"|mass shootings?|animal cruelty|vigilantism|domestic abuse)",
        r"death threats?|threaten(?:s|ed|ing)? (?:to (?:<hurt>|hurt|harm)|the user|the reader"
        r"|violence)",
        r"(?:graphic|gratuitous|gory|brutal|extreme) <gap>(?:violence|gore|torture|murder"
        r"|killings?)",
        r"violent (?:threats?|extremism)|(?:support|defend|tolerat)(?:s|ed|ing) (?:the use of )?"
        r"(?:violence|terrorism)",
        r"(?:response|answer|reply|text|content|it|tone|this|language|message|advice) "
        r"(?:is|was|gets|becomes|turns) (?:not only |not just )?<gap>violent(?! crime)",
    ),
    "sexual-minors": _either(
        r"child porn\w{0,8}|csam|child sexual abuse (?:material|images?)|lolicon|shotacon",
        r"sexuali[sz](?:e|es|ed|ing|ation) <gap><child>|<sexual> <gap><child>|naked <child>",
        r"<child> <gap>(?:having sex|in (?:a )?(?:sexual\w{0,3}|erotic) \w{1,15}|undress\w{0,4}"
        r"|nudes?|porn\w{0,8}|erotica|sexually explicit)",
        r"sex (?:acts? )?(?:with|between|involving) <gap><child>|underage sex",
        r"groom(?:s|ing)? <gap><child>(?= (?:for|into|online|sexual)|[.,;!?]|$)"
        r"|molest\w{0,4} <gap><child>",
    ),
    "hate": _either(
        # A handful: a list of slurs is never complete, and describing phrases carry the rest.
        r"n[i1]gg(?:er|a)s?|f[a4]gg[o0]ts?|k[i1]kes?|wetbacks?|ragheads?",
        r"(?:racial|racist|ethnic|antisemitic|anti semitic|homophobic|transphobic|sexist"
        r"|misogynistic|islamophobic|xenophobic|derogatory|bigoted) (?:\w{1,15} )?(?:slurs?"
        r"|epithets?|insults?|jokes?|remarks?|comments?|language|content|statements?|stereotypes?"
        r"|tropes?|rants?|views)",
        r"slurs? (?:against|targeting)|dehumani[sz](?:e|es|ed|ing|ation)|sieg heil|heil hitler",
        r"<group> are (?:all |just |nothing but |\w{1,12}ly ){0,3}(?:inferior|sub ?human|vermin"
        r"|parasites|animals|scum|filth|cockroaches|rats|criminals|trash|less intelligent)",
        r"<group> (?:should|must|deserve to|need to) (?:all |be |just ){0,3}(?:die|killed|gassed"
        r"|exterminated|eradicated|eliminated|shot|lynched)",
        r"(?:support|defend|tolerat)(?:s|ed|ing) (?:racism|hatred|hate speech|white supremacy)",
        r"i (?:really |fucking |just )?hate (?:all |the |those )?<group>|(?:gas|kill|lynch"
        r"|exterminate) (?:all )?(?:the )?<group>",
        r"(?:is|was|are|were|gets|becomes|turns|sounds) (?:not only |not just )?<gap>"
        r"(?:racist|sexist|hateful|antisemitic|homophobic|transphobic|misogynistic|xenophobic"
        r"|bigoted)",
    ),
    "weapons-drugs": _either(
        r"how to <make> <gap>(?:<item>|atomic bombs?|nuclear (?:bombs?|weapons?))",
        r"(?:instructions?|steps?|directions|guide|recipe|tutorial|guidance|walk ?through|formula"
        r"|methods?) (?:for|to|on|of|how to|about) <make> <gap>(?:<item>|nuclear (?:bombs?"
        r"|weapons?))",
        r"<item> (?:making |building |synthesis |construction )?(?:instructions?|recipes?"
        r"|tutorials?|blueprints?|guides?|synthesis)",
        r"(?:instructions?|recipe) for <gap><item>",
        r"(?:you can|you could|you should|you need to|you'll need to|let's|here's how to"
        r"|here is how to) <make> <gap><item>",
        r"to <make> <gap><item>(?=,? (?:you|first|start|begin|mix|fill|take|gather|combine|simply"
        r"|just))",
        r"help(?:s|ed|ing)? <gap><make> <gap><item>",
        r"how to (?:buy|obtain|get|smuggle|sell|deal) <gap>(?:illegal drugs?|illegal (?:guns?"
        r"|weapons?)|heroin|cocaine|meth|fentanyl|drugs(?! (?:stores?|approved|tested)))",
        # The steps themselves: two things that meet in few texts beside a recipe.
        r"ammonium nitrate(?=[^\n]{0,80}(?:fuel oil|diesel|detonat|blasting))",
        r"pseudoephedrine(?=[^\n]{0,80}(?:red phosphorus|lithium strips|anhydrous|iodine))",
        r"(?:gun ?powder|black powder)(?=[^\n]{0,80}(?:pipe|shrapnel|nails|detonat))",
        r"(?:attach|connect|wire|insert|arm)(?:ing|s)? <gap>(?:detonator|blasting cap)s?",
    ),
    "malware": _either(
        r"(?:how to|instructions? (?:for|to|on)|steps? to|guide to|tutorial (?:on|for)"
        r"|help with) <gap>(?:mak|build|writ|creat|develop|cod|deploy|spread|distribut|install|us"
        r"|launch|run|hid)(?:e|es|ing|ding)?\w{0,3} <gap><program>",
        r"(?:mak|build|writ|creat|develop|deploy|spread|distribut|generat|provid|contain|includ"
        r"|suppl)(?:e|es|s|ed|ing)? (?:(?:a|an|the|some|working|functional|functioning|complete"
        r"|full|simple|own|your|python|fully) ){0,3}<program>",
        r"(?:working|functional|functioning) <gap><program>|<program> (?:source )?(?:code"
        r"|instructions?|payload)",
        r"(?:code|script|program) (?:for|of) <gap><program>|(?:this|code|script|program|it) is "
        r"(?:an? )?<program>",
        r"here(?:'s| is) <gap><program>",
        r"(?:gives|giving|gave|provides|providing|offers|shares|contains|includes) <gap><program>",
        # What such programs do and say.
        r"(?:all )?(?:of )?your (?:personal )?files (?:have been|are|were) (?:now )?encrypted",
        r"vssadmin delete shadows|ransom notes?",
        r"(?:disabl|bypass|evad|circumvent)(?:e|es|s|ing)? <gap>(?:anti ?virus|windows defender"
        r"|edr)",
        r"steal(?:s|ing)? <gap>(?:passwords|credentials|cookies|credit cards?)",
    ),
    "personal-data": _either(
        r"(?:reveal|disclos|leak|expos|publish|divulg)(?:e|es|s|ed|ing)? <gap>"
        r"(?:<private>|api keys?|credentials|passwords?|private keys?)",
        r"(?:giv|gave|provid|shar|contain|includ|list|stat|quot|output|print|post|repeat)"
        r"(?:e|es|s|ed|ing)? (?!your )<gap>(?<!your\s)<private>",
        r"(?:doxx?(?:es|ed|ing)?)",
        r"(?:lives?|resides?|living) at <street>|(?:home |street )?address(?: is|:) <street>",
        r"<private> (?:is|are|was|were) (?:revealed|disclosed|leaked|exposed|published|given away)",
    ),
}

# Subjects that are a danger only where the clause promotes them or says that they are there:
# to mention suicide, and to mention that a film is violent, is no finding.
_RESCUED = (
    r"(?! (?:prevention|hot ?lines?|help ?lines?|life ?lines?|crisis|(?:and|&) crisis|awareness"
    r"|resources|support|survivors?|victims?|shelters?|polic(?:y|ies)|squad|doors?"
    r"|risk assessments?))"
)
_OPPOSED = r"(?<!anti-)(?<!anti\s)(?<!non-)(?<!non\s)"
TOPICS: Final[Table] = {
    "self-harm": _either(
        rf"{_OPPOSED}(?:self harm(?:ing)?|self injury|self mutilation|suicid(?:e|al behaviou?r)"
        r"|disordered eating|(?:killing|cutting|starving|hurting|harming) "
        rf"(?:your|him|her|one|them)sel(?:f|ves)|ending (?:your|their|one's) life){_RESCUED}",
    ),
    "violence": _either(
        rf"{_OPPOSED}(?:violence|violent (?:content|acts?|behaviou?r|language|imagery|crimes?)"
        rf"|terrorism|physical harm|harm to others|harming (?:others|people|someone)){_RESCUED}",
    ),
    "sexual-minors": _either(r"pa?edophil\w{1,4}|child (?:sexual )?abuse|child sexuali[sz]ation"),
    "hate": _either(
        rf"{_OPPOSED}(?:hate speech|hateful (?:content|language|speech|views|ideas)|hatred|racism"
        rf"|sexism"
        r"|anti ?semitism|homophobia|transphobia|islamophobia|xenophobia|misogyny|bigotry"
        rf"|white (?:supremacy|nationalism)|nazi ideology|nazism|genocide"
        rf"|ethnic cleansing){_RESCUED}",
    ),
    "weapons-drugs": _either(
        r"<make> <gap><item>|<item> (?:making|building|smuggling|trafficking)",
        r"(?:illegal |illicit |recreational )?drug (?:use|abuse|dealing)|(?:illegal|illicit"
        r"|hard) drugs",
    ),
}

# To explain how violence begins is history; to explain self-harm or a bomb is a danger.
EXPLAINING_IS_DANGEROUS: Final = frozenset({"self-harm", "sexual-minors", "weapons-drugs"})
