"""Choosing the next token, and taking down what was chosen."""

import codecs
import ctypes
import importlib
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

from jurybox.models.local.engine import Completion, Foreign, Job, Unanswerable


class Sampler:
    """How one answer's tokens are chosen; the grammar is asked first about the likeliest only."""

    def __init__(self, lib: Foreign, vocabulary: Foreign, job: Job) -> None:
        self._lib = lib
        self._numpy: Foreign = importlib.import_module("numpy")
        self._size: int = lib.llama_vocab_n_tokens(vocabulary)
        self._data: Foreign = self._numpy.zeros(
            self._size, dtype=[("id", "i4"), ("logit", "f4"), ("p", "f4")]
        )
        self._grammar = self._made_grammar(vocabulary, job)
        self._chain: Foreign = lib.llama_sampler_chain_init(
            lib.llama_sampler_chain_default_params()
        )
        generation = job.generation
        if generation.temperature > 0:
            parts = (
                lib.llama_sampler_init_top_p(generation.top_p, 1),
                lib.llama_sampler_init_temp(generation.temperature),
                lib.llama_sampler_init_dist(generation.seed),
            )
        else:
            parts = (lib.llama_sampler_init_greedy(),)
        for part in parts:
            lib.llama_sampler_chain_add(self._chain, part)

    def __enter__(self) -> Self:
        """Do nothing."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Free the memory."""
        self._lib.llama_sampler_free(self._chain)
        if self._grammar:
            self._lib.llama_sampler_free(self._grammar)

    def choose(self, logits: Foreign) -> int:
        """Return the next token."""
        token = self._chosen(logits, strict=False)
        if self._grammar and not self._allowed(token):
            token = self._chosen(logits, strict=True)
        if self._grammar:
            self._lib.llama_sampler_accept(self._grammar, token)
        self._lib.llama_sampler_accept(self._chain, token)
        return token

    def _chosen(self, logits: Foreign, *, strict: bool) -> int:
        self._data["id"] = self._numpy.arange(self._size)
        self._data["logit"] = logits
        self._data["p"] = 0
        array = self._array(self._data)
        if strict:
            self._lib.llama_sampler_apply(self._grammar, ctypes.byref(array))
        self._lib.llama_sampler_apply(self._chain, ctypes.byref(array))
        return array.data[array.selected].id

    def _allowed(self, token: int) -> bool:
        one = self._numpy.zeros(1, dtype=self._data.dtype)
        one["id"], one["logit"] = token, 1.0
        array = self._array(one)
        self._lib.llama_sampler_apply(self._grammar, ctypes.byref(array))
        return bool(self._numpy.isfinite(one["logit"][0]))

    def _array(self, data: Foreign) -> Foreign:
        pointer = data.ctypes.data_as(ctypes.POINTER(self._lib.llama_token_data))
        return self._lib.llama_token_data_array(
            data=pointer, size=len(data), selected=-1, sorted=False
        )

    def _made_grammar(self, vocabulary: Foreign, job: Job) -> Foreign:
        text = job.grammar
        if job.schema is not None:
            grammars: Foreign = importlib.import_module("llama_cpp.llama_grammar")
            try:
                text = grammars.json_schema_to_gbnf(job.schema)
            except Exception as error:
                raise Unanswerable(f"the runtime can't use the schema: {error}") from error
        if text is None:
            return None
        grammar = self._lib.llama_sampler_init_grammar(vocabulary, text.encode(), b"root")
        if not grammar:
            raise Unanswerable("the runtime can't read the grammar")
        return grammar


class Writing:
    """An answer that grows."""

    def __init__(
        self, lib: Foreign, context: Foreign, vocabulary: Foreign, logprobs: int = 0
    ) -> None:
        self._lib = lib
        self._numpy: Foreign = importlib.import_module("numpy")
        self._context = context
        self._vocabulary = vocabulary
        self._size: int = lib.llama_vocab_n_tokens(vocabulary)
        self._wanted = min(logprobs, self._size)
        self._entries: list[dict[str, object]] = []
        self._bytes: list[bytes] = []
        self._ended = False
        self.tokens: list[int] = []

    def is_sound(self, read: Callable[[], None]) -> bool:
        """Tell whether what is read gives numbers at all."""
        read()
        return bool(self._numpy.isfinite(self._logits()).all())

    def write(self, sampler: Sampler) -> int | None:
        """Choose the next token; None where the answer ends here."""
        logits = self._logits()
        token = sampler.choose(logits)
        self.tokens.append(token)
        if self._wanted:
            self._entries.append(self._entry(token, logits))
        if self._lib.llama_vocab_is_eog(self._vocabulary, token):
            self._ended = True
            return None
        self._bytes.append(self._piece(token))
        return token

    def completion(self, read: int, kept: int) -> Completion:
        """Return all of it; half a character at the end is left out."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        logprobs = msgspec.json.encode({"content": self._entries}).decode()
        return Completion(
            text=decoder.decode(b"".join(self._bytes)),
            finish_reason="stop" if self._ended else "length",
            prompt_tokens=read,
            completion_tokens=len(self.tokens),
            cached_tokens=kept,
            logprobs=logprobs if self._wanted else None,
        )

    def _logits(self) -> Foreign:
        pointer = self._lib.llama_get_logits_ith(self._context, -1)
        return self._numpy.ctypeslib.as_array(pointer, shape=(self._size,))

    def _entry(self, token: int, logits: Foreign) -> dict[str, object]:
        numpy = self._numpy
        exact = logits.astype(numpy.float64)
        exact -= exact.max()
        exact -= numpy.log(numpy.exp(exact).sum())
        best = numpy.argpartition(-exact, self._wanted - 1)[: self._wanted]
        ordered = sorted(best.tolist(), key=lambda each: (-exact[each], each))
        return self._probability(token, exact) | {
            "top_logprobs": [self._probability(each, exact) for each in ordered]
        }

    def _probability(self, token: int, exact: Foreign) -> dict[str, object]:
        text = self._piece(token).decode(errors="replace")
        return {"token": text, "logprob": float(exact[token])}

    def _piece(self, token: int) -> bytes:
        room, special = 64, False
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = self._lib.llama_token_to_piece(
                self._vocabulary, token, buffer, room, 0, special
            )
            if count >= 0:
                return buffer.raw[:count]
            room = -count
