"""What the safety scan looks for with an eye on its clause, which ``safety_clauses`` weighs."""

from typing import Final

from jurybox.judging.safety_vocabulary import Phrase, Table

# Subjects that are a danger only where the clause promotes them or says that they are there:
# to mention suicide, and to mention that a film is violent, is no finding.
_RESCUED = (
    r"(?! (?:prevention|hot ?lines?|help ?lines?|life ?lines?|crisis|(?:and|&) crisis|awareness"
    r"|resources|support|survivors?|victims?|shelters?|polic(?:y|ies)|squad|doors?"
    r"|risk assessments?))"
)
_OPPOSED = r"(?<!anti-)(?<!anti\s)(?<!non-)(?<!non\s)"
TOPICS: Final[Table] = {
    "self-harm": (
        Phrase(
            "self {harm,injury,mutilation}|suicid|disordered eating"
            "|{killing,cutting,starving,hurting,harming} {your,him,her,one,them}sel"
            "|ending {your,their,one s} life",
            rf"{_OPPOSED}(?:self harm(?:ing)?|self injury|self mutilation|suicid(?:e"
            r"|al behaviou?r)|disordered eating|(?:killing|cutting|starving|hurting|harming) "
            rf"(?:your|him|her|one|them)sel(?:f|ves)|ending (?:your|their|one's) life){_RESCUED}",
        ),
    ),
    "violence": (
        Phrase(
            "violence|violent|terrorism|physical harm|harm to others"
            "|harming {others,people,someone}",
            rf"{_OPPOSED}(?:violence|violent (?:content|acts?|behaviou?r|language|imagery|crimes?)"
            r"|terrorism|physical harm|harm to others|harming (?:others|people|someone))"
            rf"{_RESCUED}",
        ),
    ),
    "sexual-minors": (
        Phrase(
            "p{,a}edophil|child abuse|child sexual",
            r"pa?edophil\w{1,4}|child (?:sexual )?abuse|child sexuali[sz]ation",
        ),
    ),
    "hate": (
        Phrase(
            "hate speech|hateful|hatred|racism|sexism|semitism|homophobia|transphobia|islamophobia"
            "|xenophobia|misogyny|bigotry|white {supremacy,nationalism}|nazi ideology|nazism"
            "|genocide|ethnic cleansing",
            rf"{_OPPOSED}(?:hate speech|hateful (?:content|language|speech|views|ideas)|hatred"
            r"|racism|sexism"
            r"|anti ?semitism|homophobia|transphobia|islamophobia|xenophobia|misogyny|bigotry"
            r"|white (?:supremacy|nationalism)|nazi ideology|nazism|genocide"
            rf"|ethnic cleansing){_RESCUED}",
        ),
    ),
    "weapons-drugs": (
        Phrase(
            "<item> & <make>|smuggling|trafficking",
            r"<make> <gap><item>|<item> (?:making|building|smuggling|trafficking)",
        ),
        Phrase(
            "drug {use,abuse,dealing}|{illegal,illicit,hard} drugs",
            r"(?:illegal |illicit |recreational )?drug (?:use|abuse|dealing)|(?:illegal|illicit"
            r"|hard) drugs",
        ),
    ),
}

# To explain how violence begins is history; to explain self-harm or a bomb is a danger.
EXPLAINING_IS_DANGEROUS: Final = frozenset({"self-harm", "sexual-minors", "weapons-drugs"})
