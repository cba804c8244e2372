"""A fleet that changes under load: another image, more replicas, fewer replicas. No stream and no request is lost."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from tests.engine.fleet.conftest import Fleet, Nodes, StartFleet, eventually
from tests.engine.fleet.fakes import fake_plan, identify_by_node
from tests.engine.server.client import Wire, speech_bytes
from tests.engine.server.fake_engine import speech_pcm
from tests.engine.server.test_speech import audio_of

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]  # Ray and what it imports warn of themselves

OLD, NEW = ("sha256:" + digit * 64 for digit in "12")


def keep_asking(fleet: Fleet, stop: threading.Event) -> list[str]:
    """How each of the requests ended, one after another until `stop`."""
    ends = []
    while not stop.is_set():
        with Wire(fleet.address) as wire:
            wire.ask(speech_bytes("frames=10", seed=7))
            ends.append(list(wire.parts())[-1].document["type"] if wire.status == 200 else str(wire.status))
    return ends


def images(fleet: Fleet) -> list[tuple[str, str]]:
    return sorted((one["state"], one["digests"]["image"]) for one in fleet.replicas())


def test_another_image_replaces_the_first_without_a_refused_request(
    start_fleet: StartFleet, nodes: Nodes, tmp_path: Path
) -> None:
    from engine.fleet import cluster

    nodes.add(environment={"ASSAY_IMAGE_DIGEST": OLD}, old=2)
    nodes.add(environment={"ASSAY_IMAGE_DIGEST": NEW}, new=2)
    plan = partial(fake_plan, tmp_path, slots=3, frame_seconds=0.02, identify=identify_by_node, drain_seconds=30.0)
    fleet = start_fleet(plan=plan(generation="old", resources={"old": 1}))
    assert images(fleet) == [("serving", OLD), ("serving", OLD)]
    stop = threading.Event()
    with ThreadPoolExecutor(3) as clients:
        long, _ = fleet.begin("frames=300")
        parts = long.answer().parts()
        heard = list(islice(parts, 2))
        listening = clients.submit(list, parts)
        asking = [clients.submit(keep_asking, fleet, stop) for _ in range(2)]
        cluster.roll(plan(generation="new", resources={"new": 1}))
        _, *audio, end = [*heard, *listening.result()]
        eventually(lambda: images(fleet) == [("serving", NEW), ("serving", NEW)], 30)
        time.sleep(0.5)
        stop.set()
        ends = [end for client in asking for end in client.result()]
    assert audio_of(audio) == speech_pcm(7, 300)
    assert end.document["finish_reason"] == "stop"
    assert set(ends) == {"end"}
    assert len(ends) > 20
    assert fleet.ready()


def test_replicas_follow_the_occupancy_and_the_one_that_goes_finishes_its_streams(start_fleet: StartFleet) -> None:
    fleet = start_fleet(
        slots=4, replicas=1, most=2, occupancy=0.5, scale_up_seconds=0.5, scale_down_seconds=1.0, drain_seconds=60.0
    )
    assert fleet.metric("assay_slots") == 4
    fleet.workshop.hold(5)
    begun = [fleet.begin("frames=30") for _ in range(4)]
    streams = [wire.answer().parts() for wire, _ in begun]
    heard = [list(islice(parts, 2)) for parts in streams]
    eventually(lambda: fleet.metric("assay_slots") == 8, 60)
    late, late_id = fleet.begin("frames=30")
    late_parts = late.answer().parts()
    late_heard = list(islice(late_parts, 2))
    assert fleet.seen(late_id).pid != fleet.seen(begun[0][1]).pid
    for wire, _ in begun[1:]:
        wire.socket.close()
    eventually(lambda: "draining" in {one["state"] for one in fleet.replicas()}, 60)
    eventually(
        lambda: fleet.metric("assay_slots") == 5
    )  # four, and the one that the draining replica's stream still holds
    fleet.workshop.release()
    for first, rest in ((heard[0], streams[0]), (late_heard, late_parts)):
        _, *audio, end = [*first, *rest]
        assert audio_of(audio) == speech_pcm(7, 30)
        assert end.document["finish_reason"] == "stop"
    eventually(lambda: [one["state"] for one in fleet.replicas()] == ["serving"], 30)
