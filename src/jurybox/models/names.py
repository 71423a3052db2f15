"""Names of models: ``provider/name[@version]``."""

import msgspec

from jurybox.errors import InputError
from jurybox.judging.model_versions import PINNED
from jurybox.models.providers import PROVIDERS, OwnProvider
from jurybox.text_format import listed, nearest


class ModelName(msgspec.Struct, frozen=True, kw_only=True):
    """A model's name, taken apart.

    Attributes:
        name: what the provider calls the model, or the function, or the file.
        version: the text after the ``@``; it isn't sent, because no provider knows it.

    """

    provider: str
    name: str
    version: str | None = None

    @classmethod
    def parse(cls, text: str) -> "ModelName":
        """Read a name.

        Raises:
            InputError: it isn't one, or it means a different model every month.

        """
        provider, slash, rest = text.strip().partition("/")
        if not slash or not provider or not rest:
            problem = f"`{text}` isn't the name of a model"
            raise InputError(problem, "write `provider/name`, such as `openai/gpt-4.1-2025-04-14`")
        if provider not in PROVIDERS:
            known = f"there are {listed(tuple(PROVIDERS))}"
            hint = nearest(provider, tuple(PROVIDERS), known)
            raise InputError(f"`{text}`: there is no provider `{provider}`", hint)
        # A path may hold anything, and a file stays what it is.
        own = PROVIDERS[provider]
        if isinstance(own, OwnProvider) and own.is_path:
            return cls(provider=provider, name=rest)
        name, at, version = rest.rpartition("@") if "@" in rest else (rest, "", "")
        if not name or (at and not version):
            problem = f"`{text}` lacks a {'version behind the `@`' if name else 'name'}"
            raise InputError(problem, "write `provider/name@version`")
        if "latest" in rest.lower():
            problem = f"`{text}` means another model whenever the provider likes"
            raise InputError(problem, "name the version instead of `latest`")
        return cls(provider=provider, name=name, version=version or None)

    @property
    def pin(self) -> str | None:
        """What says which version is meant: what is behind the ``@``, or a date or a digest."""
        if self.version is not None:
            return self.version
        found = None if self._is_own else PINNED.search(self.name)
        return None if found is None else found[0].lstrip("-:")

    @property
    def is_pinned(self) -> bool:
        """Whether the name always means the same: a file or code of yours is under your control."""
        return self._is_own or self.pin is not None

    @property
    def _is_own(self) -> bool:
        return isinstance(PROVIDERS[self.provider], OwnProvider)

    def __str__(self) -> str:
        """Return the name as it is written."""
        version = "" if self.version is None else f"@{self.version}"
        return f"{self.provider}/{self.name}{version}"
