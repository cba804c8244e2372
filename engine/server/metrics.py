"""Prometheus metrics. Labels have few, fixed values: never text, description, language, request id or user.

Each server owns its registry, so several can live in one process.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from engine.contract import EngineCounters, SpeechEnd, StopReason

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
RATIOS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 5.0, 10.0)


class Metrics:
    """The server's counters and histograms, all prefixed `assay_`."""

    def __init__(self, slots: int = 0) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # resident memory, open files, CPU time
        self.requests = self._counter("requests", "Speech requests by outcome", "endpoint", "outcome")
        self.rejected = self._counter("rejected", "Requests refused before any audio", "code")
        self.cancelled = self._counter("cancelled", "Requests stopped before their end", "cause")
        self.ends = self._counter("ends", "Finished requests by reason (stop: natural, length: ceiling)", "reason")
        self.samples = self._counter("emitted_samples", "PCM samples handed to clients")
        self.retirement_timeouts = self._counter("retirement_timeouts", "Cancelled requests the engine did not end")
        self.active = self._gauge("active_requests", "Requests that hold a slot")
        self.slots = self._gauge("slots", "Slots of the engine")
        self.tombstones = self._gauge("tombstones", "Slots lost to requests the engine did not end")
        self.ready = self._gauge("ready", "1 while requests are admitted")
        self.occupancy = self._histogram(
            "batch_occupancy",
            "Active requests, at each admission, the new one included",
            (1, 2, 3, 4, 5, 6, 8, 12, 16, 32),
        )
        self.ttfa = self._histogram("time_to_first_audio_seconds", "Request read until first audio written", SECONDS)
        self.rtf = self._histogram("real_time_factor", "Wall time over audio time of finished requests", RATIOS)
        self.queue = self._histogram("queue_seconds", "Engine's own wait before prefill", SECONDS)
        self.slots.set(slots)

    def finished(self, end: SpeechEnd) -> None:
        """Count a request that came to its own end."""
        self.ends.labels(reason="stop" if end.reason is StopReason.EOS else "length").inc()
        self.queue.observe(end.metrics.queue_microseconds / 1e6)
        if end.metrics.emitted_samples:
            audio_seconds = end.metrics.emitted_samples / 24_000
            self.rtf.observe(end.metrics.wall_microseconds / 1e6 / audio_seconds)

    def watch_engine(self, read: Callable[[], EngineCounters]) -> None:
        """Export the engine's own counters, read at each scrape."""
        self.registry.register(_EngineCollector(read))

    def text(self) -> bytes:
        """The exposition, Prometheus text format 0.0.4."""
        return generate_latest(self.registry)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"assay_{name}", help_text, labels, registry=self.registry)

    def _gauge(self, name: str, help_text: str) -> Gauge:
        return Gauge(f"assay_{name}", help_text, registry=self.registry)

    def _histogram(self, name: str, help_text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"assay_{name}", help_text, buckets=buckets, registry=self.registry)


class _EngineCollector(Collector):
    def __init__(self, read: Callable[[], EngineCounters]) -> None:
        self._read = read

    def collect(self) -> list[Metric]:
        counters = self._read()
        rows = (
            ("frame_steps", "Frame steps the engine has run", counters.frame_steps),
            ("rows_advanced", "Rows advanced, summed over frame steps", counters.rows_advanced),
            ("graph_replays", "CUDA graph replays", counters.graph_replays),
        )
        return [CounterMetricFamily(f"assay_engine_{name}", text, value=value) for name, text, value in rows]
