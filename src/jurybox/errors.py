"""The errors that a user has to act on.

::

    JuryboxError
    ├── InputError             an input can't be used              (exit code 2)
    │   ├── ParseError         a short text: a scale, a comparison, a formula
    │   ├── CombinedError      several errors in the inputs of a run
    │   └── DocumentError      a whole document, with all its findings
    │       ├── RubricError
    │       ├── SuiteError     in `jurybox.suite`
    │       └── DatasetError   in `jurybox.datasets`
    └── IncompleteError        the work could not be completed     (exit code 3)

Every message says where the problem is, what it is and how to fix it. The expected failure of a
single sample is returned as a value, never raised. Any function may raise these errors; only the
docstrings of public functions list them.
"""

from collections.abc import Sequence

import msgspec


class JuryboxError(Exception):
    """The root of every error that jurybox raises on purpose."""


class InputError(JuryboxError):
    """An input can't be used; the message says where, what is wrong and how to fix it."""

    def __init__(self, problem: str, hint: str, where: str = "") -> None:
        """Build the message; a caller that knows ``where`` may raise the error again with it."""
        super().__init__(f"{where}: {problem}; {hint}" if where else f"{problem}; {hint}")
        self.where = where
        self.problem = problem
        self.hint = hint


class ParseError(InputError):
    """A short string can't be parsed; the caller adds where it is written."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fault in a document: where it is, what is wrong, and how to fix it."""

    line: int
    column: int
    code: str
    problem: str
    hint: str

    def __str__(self) -> str:
        """Return ``line:column: problem; hint [code]``."""
        return f"{self.line}:{self.column}: {self.problem}; {self.hint} [{self.code}]"


class DocumentError(InputError):
    """A document is refused; ``findings`` lists every fault, in the order of the text."""

    def __init__(self, origin: str, findings: Sequence[Finding]) -> None:
        """Refuse the document named ``origin``."""
        super().__init__("the document has findings", "fix each of them", origin)
        self.findings = tuple(findings)

    def __str__(self) -> str:
        """Return a line for each finding."""
        return "\n".join(f"{self.where}:{finding}" for finding in self.findings)


class CombinedError(InputError):
    """Several input errors, raised together."""

    def __init__(self, errors: Sequence[InputError]) -> None:
        """Combine the errors into one."""
        super().__init__("several inputs can't be used", "fix each of them")
        self.errors = tuple(errors)

    def __str__(self) -> str:
        """Return the messages of all errors, one below the other."""
        return "\n".join(str(error) for error in self.errors)


class RubricError(DocumentError):
    """A rubric document is refused."""


class IncompleteError(JuryboxError):
    """The work could not be completed; finished parts are kept."""
