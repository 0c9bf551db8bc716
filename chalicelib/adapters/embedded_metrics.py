"""CloudWatch's embedded metric format, by Powertools: lines of the log that become metrics."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from chalicelib.domain.reporting import NAMESPACE, PREFIX, Sample

Write = Callable[[str], object]


def to_the_log(text: str) -> None:
    """Write to where Lambda takes lines of the log from."""
    sys.stdout.write(text)
    sys.stdout.flush()


class EmbeddedMetrics:
    """Writes samples as lines, those of the same dimensions together."""

    def __init__(self, prefix: str, write: Write = to_the_log) -> None:
        """Tell them of an installation, by the prefix of its resources."""
        self._prefix = prefix
        self._write = write

    def tell(self, samples: Sequence[Sample], at_ms: int) -> None:
        """Tell numbers of a moment (Unix ms) in one write, so that a process that dies tells all or none."""
        lines = "".join(f"{line}\n" for line in self._lines(samples, at_ms))
        if lines:
            self._write(lines)

    def _lines(self, samples: Sequence[Sample], at_ms: int) -> Iterator[str]:
        for dimension, some in groupby(sorted(samples, key=_dimension), key=_dimension):
            yield self._line(dimension, list(some), at_ms)

    def _line(self, dimension: tuple[str, str], samples: Sequence[Sample], at_ms: int) -> str:
        # A dictionary of its own each: a provider without one would share what another was given.
        metrics = AmazonCloudWatchEMFProvider(metric_set={}, dimension_set={}, namespace=NAMESPACE)
        metrics.add_dimension(PREFIX, self._prefix)
        label, value = dimension
        if label:
            metrics.add_dimension(label, value)
        metrics.timestamp = at_ms
        for each in samples:
            metrics.add_metric(each.metric.name, each.unit, each.number)
        return json.dumps(metrics.serialize_metric_set(), separators=(",", ":"))


def _dimension(of: Sample) -> tuple[str, str]:
    return of.label, of.value
