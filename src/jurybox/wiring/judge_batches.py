"""Judges that are asked in their providers' batches."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from jurybox.errors import InputError
from jurybox.models.names import ModelName
from jurybox.running.ports import Model
from jurybox.running.records import sealed_batch
from jurybox.running.storing import Store
from jurybox.wording import listed

if TYPE_CHECKING:
    from jurybox.models.batch_log import BatchLog
    from jurybox.models.batched import BatchedModel

_PROVIDERS: Final = ("anthropic", "openai")
_MEND: Final = "ask directly with --no-batch"


def check_batchable(judges: Sequence[str], origin: str) -> None:
    """See that all judges have batches, before anybody is asked anything.

    Raises:
        InputError: one has none, or there is no judge.

    """
    if not judges:
        raise InputError("there is no judge to ask in batches", _MEND, origin)
    for name in judges:
        if ModelName.parse(name).provider not in _PROVIDERS:
            mend = f"{_MEND}, or name judges of {listed(_PROVIDERS)}"
            raise InputError("the judge can't be asked in batches", mend, name)


def batched_model(name: str, model: Model, log: "BatchLog") -> "BatchedModel":
    """Return the model as it is asked in batches.

    Raises:
        InputError: it has none.

    """
    from jurybox.models.anthropic import AnthropicModel
    from jurybox.models.anthropic_batches import AnthropicBatches
    from jurybox.models.batched import BatchedModel
    from jurybox.models.openai import OpenAIModel
    from jurybox.models.openai_batches import OpenAIBatches

    match model:
        case OpenAIModel():
            return BatchedModel(name, model, OpenAIBatches(), log)
        case AnthropicModel():
            return BatchedModel(name, model, AnthropicBatches(), log)
        case _:
            raise InputError("the judge can't be asked in batches", _MEND, name)


def close_batches(store: Store, run_id: str, state: str) -> None:
    """Wait for no batch of a run any more: all is ``read``, or what they hold is ``gone``.

    Raises:
        IncompleteError: the store is in trouble.

    """
    for row in store.batches(run_id):
        if row.state in {"submitting", "submitted"}:
            store.update_batch(sealed_batch(msgspec.structs.replace(row, state=state)))
