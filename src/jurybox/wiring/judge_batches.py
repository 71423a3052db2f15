"""Judges that are asked in their providers' batches."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from jurybox.errors import InputError
from jurybox.models.names import ModelName
from jurybox.running.batch_model import BatchModel
from jurybox.running.ledger import OPEN
from jurybox.running.ports import Model
from jurybox.running.records import sealed_batch
from jurybox.running.storing import Store
from jurybox.wording import listed

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


def batch_models(models: Mapping[str, Model]) -> dict[str, BatchModel]:
    """Return the models as they are asked in batches.

    Raises:
        InputError: one can't be.

    """
    return {name: _batched(name, model) for name, model in models.items()}


def _batched(name: str, model: Model) -> BatchModel:
    from jurybox.models.anthropic import AnthropicModel
    from jurybox.models.anthropic_batches import AnthropicBatches
    from jurybox.models.batches import BatchedModel
    from jurybox.models.openai import OpenAIModel
    from jurybox.models.openai_batches import OpenAIBatches

    match model:
        case OpenAIModel():
            return BatchedModel(model, OpenAIBatches())
        case AnthropicModel():
            return BatchedModel(model, AnthropicBatches())
        case _:
            raise InputError("the judge can't be asked in batches", _MEND, name)


def forget(store: Store, run_id: str) -> None:
    """Wait for no batch of a run any more: what they were asked is asked again.

    Raises:
        IncompleteError: the store is in trouble.

    """
    for row in store.batches(run_id):
        if row.state in OPEN:
            store.update_batch(sealed_batch(msgspec.structs.replace(row, state="gone")))
