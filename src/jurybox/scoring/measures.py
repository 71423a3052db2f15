"""What is measured of a response, rather than judged (A1)."""

from jurybox.sample import Response

Measures = dict[str, float | None]


def measures(response: Response) -> Measures:
    """Return every measure of ``rubric.metrics.MEASURES``; None where nobody measured it.

    Times that come from a cache are no measurement of this run, so they are left out.
    """
    timing, usage = response.timing, response.usage
    measured = not timing.cached
    put_in, put_out = usage.input_tokens, usage.output_tokens
    total, ratio = None, None
    if put_in is not None and put_out is not None:
        total, ratio = put_in + put_out, put_out / max(put_in, 1)
    return {
        "latency_e2e_ms": timing.latency_e2e_ms if measured else None,
        "latency_model_ms": timing.latency_model_ms if measured else None,
        "input_tokens": put_in,
        "output_tokens": put_out,
        "total_tokens": total,
        "token_efficiency_ratio": ratio,
    }
