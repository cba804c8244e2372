"""More than one node: a node that is lost, a head that restarts, skewed load, slow clients beside quick ones."""

from __future__ import annotations

import signal
import time
from itertools import islice
from pathlib import Path

import pytest

from tests.engine.fleet.conftest import Nodes, StartFleet, eventually
from tests.engine.server.client import request_bytes, speech_bytes
from tests.engine.server.conftest import launch
from tests.engine.server.fake_engine import speech_pcm
from tests.engine.server.test_speech import audio_of

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]  # Ray and what it imports warn of themselves


def test_a_lost_node_takes_its_own_streams_and_a_new_one_brings_its_slots_back(
    start_fleet: StartFleet, nodes: Nodes
) -> None:
    first, second = nodes.add(engine=1), nodes.add(engine=1)
    fleet = start_fleet(frame_seconds=0.02, resources={"engine": 1}, settings={"slow_reader_seconds": 30.0})
    assert len({one["node"] for one in fleet.replicas()}) == 2
    begun = [fleet.begin("frames=400") for _ in range(2)]
    streams = [wire.answer().parts() for wire, _ in begun]
    heard = [list(islice(parts, 3)) for parts in streams]
    by_node = {one["node"]: index for index, one in enumerate(fleet.replicas())}
    lost = by_node[second.node_id]
    nodes.lose(second)
    error = list(streams[lost])[-1].document
    assert (error["type"], error["error"]["code"]) == ("error", "backend_unavailable")
    *audio, end = [*heard[1 - lost], *streams[1 - lost]][1:]
    assert audio_of(audio) == speech_pcm(7, 400)
    assert end.document["finish_reason"] == "stop"
    assert fleet.ready()
    eventually(lambda: fleet.metric("assay_slots") == 2)
    nodes.add(engine=1)
    eventually(lambda: fleet.metric("assay_slots") == 4, 60)
    assert first.node_id in {one["node"] for one in fleet.replicas()}


def test_short_requests_beside_long_ones_all_go_where_slots_are_free(start_fleet: StartFleet) -> None:
    fleet = start_fleet(slots=3)
    fleet.workshop.hold(1)
    held = [fleet.begin("frames=9") for _ in range(2)]
    for wire, _ in held:
        list(islice(wire.answer().parts(), 2))
    assert len({fleet.seen(request_id).pid for _, request_id in held}) == 2
    held[0][0].socket.close()
    eventually(lambda: fleet.metric("assay_active_requests") == 1)
    busy = fleet.seen(held[1][1]).pid
    for _ in range(4):
        wire, request_id = fleet.begin("frames=1")
        list(wire.answer().parts())
        assert fleet.seen(request_id).pid != busy


def test_clients_that_do_not_read_are_cancelled_and_delay_nobody(start_fleet: StartFleet) -> None:
    fleet = start_fleet(slots=4, settings={"slow_reader_seconds": 1.0})
    slow = [fleet.begin("frames=1400", receive_buffer=4_096) for _ in range(4)]
    for wire, _ in slow:
        list(islice(wire.answer().parts(), 2))
    began = time.monotonic()
    for _ in range(4):
        wire = fleet.ask(speech_bytes("frames=60", seed=7))
        _, *audio, _ = list(wire.parts())
        assert audio_of(audio) == speech_pcm(7, 60)
    assert time.monotonic() - began < 5.0
    eventually(lambda: fleet.metric('assay_cancelled_total{cause="slow_reader"}') == 4)
    eventually(lambda: fleet.metric("assay_active_requests") == 0)


def test_streams_go_on_while_the_head_restarts(start_fleet: StartFleet, nodes: Nodes) -> None:
    fleet = start_fleet(frame_seconds=0.02, settings={"slow_reader_seconds": 30.0})
    begun = [fleet.begin("frames=400") for _ in range(2)]
    streams = [wire.answer().parts() for wire, _ in begun]
    heard = [list(islice(parts, 2)) for parts in streams]
    head = nodes.cluster.head_node
    head.kill_gcs_server()
    time.sleep(1.0)
    during = fleet.ask(speech_bytes("frames=6", seed=7))  # a new one needs no head either
    assert list(during.parts())[-1].document["finish_reason"] == "stop"
    wire, request_id = fleet.begin("frames=400")
    list(islice(wire.answer().parts(), 2))
    assert fleet.ask(request_bytes("DELETE", f"/v1/requests/{request_id}")).status == 202
    head.start_gcs_server()
    for first, rest in zip(heard, streams, strict=True):
        *audio, end = [*first, *rest][1:]
        assert audio_of(audio) == speech_pcm(7, 400)
        assert end.document["finish_reason"] == "stop"
    eventually(lambda: fleet.metric("assay_active_requests") == 0)
    assert fleet.ready()


def test_the_command_joins_serves_the_real_engine_and_ends_on_sigterm(nodes: Nodes, tmp_path: Path) -> None:
    flags = ("engine", "fleet", "--address", nodes.cluster.address, "--replicas", "2")
    fleet = launch(("--log-level", "error"), tmp_path / "fleet.log", flags)
    try:
        eventually(fleet.ready, 120)
        wire = fleet.ask(speech_bytes("One sentence.", seed=1, max_duration_seconds=2))
        start, *audio, end = list(wire.parts())
        assert start.document["model"] == "assay/reference-voice-design"
        assert len(audio_of(audio)) == 2 * end.document["metrics"]["emitted_samples"]
        fleet.signal(signal.SIGTERM)
        assert fleet.exit_code(60) == 0
    finally:
        fleet.process.kill()
        fleet.process.wait(10)
        fleet.close()
