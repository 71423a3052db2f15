"""The engine over `llama-cpp-python`, which is built for the very processor it runs on."""

import importlib
from collections.abc import Callable, Sequence
from typing import Final

from jurybox.models.local.chat import Piece, Prompts
from jurybox.models.local.engine import (
    NO_NUMBERS,
    UNKNOWN_FILE,
    Completion,
    Foreign,
    Job,
    LoadingFailed,
    Options,
    Stopped,
    Unanswerable,
)
from jurybox.models.local.llama_cpp_sampling import Sampler, Writing
from jurybox.models.local.reading import Held, Step, plan
from jurybox.models.local.threads import import_runtime

NAME: Final = "llama-cpp-python"

# What llama.cpp itself assumes of a file that has no template.
_CHATML: Final = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}<|im_start|>assistant\n"
)


class LlamaCppEngine:
    """One file and one context, driven token by token through llama.cpp's own functions."""

    def __init__(self, path: str, options: Options) -> None:
        """Load the file.

        Raises:
            LoadingFailed: it can't be loaded.

        """
        self._lib: Foreign = import_runtime("llama_cpp")
        self._version = f"{NAME} {self._lib.__version__}"
        self._options = options
        self._silence()
        self._lib.llama_backend_init()
        self._model: Foreign = self._lib.llama_model_load_from_file(
            path.encode(), self._model_params()
        )
        if not self._model:
            raise LoadingFailed(UNKNOWN_FILE)
        self._context: Foreign = self._lib.llama_init_from_model(
            self._model, self._context_params()
        )
        if not self._context:
            self._lib.llama_model_free(self._model)
            raise LoadingFailed("there isn't enough memory for it")
        self._vocabulary: Foreign = self._lib.llama_model_get_vocab(self._model)
        self._held = Held()
        self._prompts = Prompts(self._rendered, self._tokenized)
        self._keeps = True
        if not Writing(self._lib, self._context, self._vocabulary).is_sound(self._probe):
            self.close()
            raise LoadingFailed(NO_NUMBERS)

    @property
    def version(self) -> str:
        """The runtime and its version."""
        return self._version

    def complete(self, job: Job, stopped: Callable[[], bool]) -> Completion:
        """Answer."""
        wanted = self._prompts.segments(job, whole=not self._keeps, most=self._options.context)
        length = sum(len(tokens) for tokens in wanted)
        reading = plan(self._held, wanted, cuts_anywhere=True)
        # Until all is well, nothing is known of what the context holds.
        self._held = Held()
        with Sampler(self._lib, self._vocabulary, job) as sampler:
            for step in reading.steps:
                self._read(step, stopped)
            writing = Writing(self._lib, self._context, self._vocabulary, job.logprobs)
            while len(writing.tokens) < job.generation.max_tokens:
                token = writing.write(sampler)
                if token is None or length + len(writing.tokens) >= self._options.context:
                    break
                if len(writing.tokens) < job.generation.max_tokens:
                    self._decode((token,), stopped)
        self._held = reading.held
        return writing.completion(length, reading.kept)

    def close(self) -> None:
        """Free the memory."""
        if self._context:
            self._lib.llama_free(self._context)
            self._lib.llama_model_free(self._model)
        self._context = self._model = None

    def _read(self, step: Step, stopped: Callable[[], bool]) -> None:
        memory = self._lib.llama_get_memory(self._context)
        if not self._lib.llama_memory_seq_rm(memory, 0, step.start, -1):
            raise Unanswerable("the runtime can't take back what this model has read")
        size = self._options.batch
        for start in range(step.start, len(step.tokens), size):
            self._decode(step.tokens[start : start + size], stopped)

    def _decode(self, tokens: Sequence[int], stopped: Callable[[], bool]) -> None:
        if stopped():
            raise Stopped
        array = (self._lib.llama_token * len(tokens))(*tokens)
        batch = self._lib.llama_batch_get_one(array, len(tokens))
        code = self._lib.llama_decode(self._context, batch)
        if code:
            raise Unanswerable(f"the runtime can't go on (llama_decode gave {code})")

    def _probe(self) -> None:
        memory = self._lib.llama_get_memory(self._context)
        self._decode((1, 2, 3), lambda: False)
        # Some kinds of models can't take back a part of what they have read.
        self._keeps = bool(self._lib.llama_memory_seq_rm(memory, 0, 2, -1))
        self._decode((3,), lambda: False)

    def _rendered(self, messages: Sequence[dict[str, str]]) -> str:
        template = self._lib.llama_model_chat_template(self._model, None)
        first, last = (
            self._special(getattr(self._lib, f"llama_vocab_{which}")(self._vocabulary))
            for which in ("bos", "eos")
        )
        formats: Foreign = importlib.import_module("llama_cpp.llama_chat_format")
        try:
            form = formats.Jinja2ChatFormatter(
                template=template.decode() if template else _CHATML,
                eos_token=last,
                bos_token=first,
            )
            rendered: str = form(messages=messages).prompt
        except Exception as error:
            what = " ".join(str(error).split())
            raise Unanswerable(f"the model's chat template fails: {what}") from error
        # It comes with the tokens.
        adds = self._lib.llama_vocab_get_add_bos(self._vocabulary)
        return rendered.removeprefix(first) if adds and first else rendered

    def _special(self, token: int) -> str:
        return (
            self._lib.llama_vocab_get_text(self._vocabulary, token).decode() if token >= 0 else ""
        )

    def _tokenized(self, piece: Piece, *, opens: bool) -> Sequence[int]:
        text = piece.text.encode()
        # At most one for every byte, and those at both ends.
        room = len(text) + 2
        array = (self._lib.llama_token * room)()
        count = self._lib.llama_tokenize(
            self._vocabulary, text, len(text), array, room, opens, piece.marks
        )
        if count < 0:
            raise Unanswerable("the runtime can't read the prompt")
        return array[:count]

    def _silence(self) -> None:
        # Kept, because the library calls it for as long as it is there.
        self._quiet: Foreign = self._lib.llama_log_callback(_say_nothing)
        self._lib.llama_log_set(self._quiet, None)

    def _model_params(self) -> Foreign:
        params = self._lib.llama_model_default_params()
        params.n_gpu_layers = 0
        return params

    def _context_params(self) -> Foreign:
        params = self._lib.llama_context_default_params()
        params.n_ctx = self._options.context
        params.n_batch = params.n_ubatch = self._options.batch
        params.n_threads = params.n_threads_batch = self._options.threads
        params.n_seq_max = 1
        params.swa_full = True
        params.no_perf = True
        return params


def _say_nothing(_level: int, _text: bytes, _data: object) -> None:
    """Take what the library would print."""
