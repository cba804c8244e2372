"""The wire contract before two replicas: what one server keeps, the fleet keeps, whatever becomes of a replica."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from itertools import islice
from pathlib import Path
from uuid import UUID

import pytest

from engine.contract import SAMPLES_PER_FRAME
from tests.engine.fleet.conftest import Fleet, StartFleet, eventually
from tests.engine.fleet.fakes import fake_plan, identify_first_with
from tests.engine.server.client import Wire, request_bytes, speech_bytes
from tests.engine.server.fake_engine import speech_pcm
from tests.engine.server.test_speech import audio_of

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]  # Ray and what it imports warn of themselves

FRAME_SECONDS = 0.05
ENDLESS = "frames=1400"


def first_audio(wire: Wire) -> None:
    """Read the start part and the first audio part."""
    list(islice(wire.answer().parts(), 2))


def settled_steps(fleet: Fleet, request_id: UUID) -> int:
    """Steps of a stopped request, once three more frames could have been made."""
    eventually(lambda: fleet.metric("assay_active_requests") == 0)
    time.sleep(3 * FRAME_SECONDS)
    return fleet.seen(request_id).steps


def test_the_first_part_arrives_before_generation_ends(start_fleet: StartFleet) -> None:
    fleet = start_fleet()
    fleet.workshop.hold(1)
    wire, request_id = fleet.begin("frames=30")
    parts = wire.answer().parts()
    assert next(parts).document["type"] == "start"
    audio = [next(parts)]
    assert len(audio[0].body) == 2 * SAMPLES_PER_FRAME
    assert fleet.seen(request_id).steps == 1  # the engine waits at the gate: 29 frames do not exist yet
    fleet.workshop.release()
    *rest, end = list(parts)
    assert audio_of([*audio, *rest]) == speech_pcm(7, 30)
    assert end.document["finish_reason"] == "stop"


def test_requests_go_to_free_slots_and_the_last_one_too_many_gets_429(start_fleet: StartFleet) -> None:
    fleet = start_fleet(slots=2)
    assert fleet.get("/v1/capabilities").document()["max_concurrent_requests"] == 4
    eventually(lambda: fleet.metric("assay_slots") == 4)
    fleet.workshop.hold(1)
    requests = [fleet.begin("frames=9") for _ in range(4)]
    for wire, _ in requests:
        first_audio(wire)
    pids = [fleet.seen(request_id).pid for _, request_id in requests]
    assert sorted(pids.count(pid) for pid in set(pids)) == [2, 2]
    refused = fleet.ask(speech_bytes())
    assert (refused.status, refused.document()["code"]) == (429, "capacity_exhausted")
    assert "retry-after" in refused.headers
    fleet.workshop.release()
    eventually(lambda: fleet.metric("assay_active_requests") == 0)


def test_what_an_engine_refuses_is_refused_before_the_stream(start_fleet: StartFleet) -> None:
    fleet = start_fleet(replicas=1)
    fleet.workshop.hold(1)
    wire, request_id = fleet.begin("frames=9")
    first_audio(wire)
    again = fleet.ask(speech_bytes("frames=9", {"X-Request-Id": str(request_id)}))
    assert (again.status, again.document()["code"]) == (409, "request_id_in_use")


def test_delete_reaches_the_replica_within_one_frame(start_fleet: StartFleet) -> None:
    fleet = start_fleet(frame_seconds=FRAME_SECONDS)
    wire, request_id = fleet.begin(ENDLESS)
    first_audio(wire)
    before = fleet.seen(request_id)
    answer = fleet.ask(request_bytes("DELETE", f"/v1/requests/{request_id}"))
    assert answer.status == 202
    assert settled_steps(fleet, request_id) - before.steps <= 2  # the one under way, and one frame's time
    gone = fleet.ask(request_bytes("DELETE", f"/v1/requests/{request_id}"))
    assert (gone.status, gone.document()["code"]) == (404, "request_not_found")


def test_a_disconnect_reaches_the_replica_within_one_frame(start_fleet: StartFleet) -> None:
    fleet = start_fleet(frame_seconds=FRAME_SECONDS)
    wire, request_id = fleet.begin(ENDLESS)
    first_audio(wire)
    before = fleet.seen(request_id)
    wire.socket.close()
    assert settled_steps(fleet, request_id) - before.steps <= 2


def test_a_reader_that_pauses_parks_its_row_in_the_engine(start_fleet: StartFleet) -> None:
    fleet = start_fleet(settings={"slow_reader_seconds": 30.0})
    wire, request_id = fleet.begin(ENDLESS, receive_buffer=4_096)
    first_audio(wire)
    time.sleep(1.0)
    first = fleet.seen(request_id)
    time.sleep(0.5)
    assert first == fleet.seen(request_id)  # an engine without bounds would have made all 1,400 frames
    assert first.steps < 200


def test_a_killed_replica_loses_its_own_requests_only_and_its_slots_come_back(start_fleet: StartFleet) -> None:
    fleet = start_fleet(frame_seconds=0.02)
    (lost, lost_id), (kept, kept_id) = fleet.begin("frames=200"), fleet.begin("frames=200")
    lost_parts, kept_parts = lost.answer().parts(), kept.answer().parts()
    first = [next(kept_parts), next(kept_parts)]
    list(islice(lost_parts, 2))
    assert fleet.seen(lost_id).pid != fleet.seen(kept_id).pid
    os.kill(fleet.seen(lost_id).pid, signal.SIGKILL)
    error = list(lost_parts)[-1].document
    assert (error["type"], error["error"]["code"]) == ("error", "backend_unavailable")
    assert fleet.ready()
    *audio, end = [*first[1:], *kept_parts]
    assert audio_of(audio) == speech_pcm(7, 200)
    assert end.document["finish_reason"] == "stop"
    eventually(lambda: fleet.metric("assay_slots") == 4, 30)


def test_the_odd_one_is_named_by_readiness_and_gets_no_request(start_fleet: StartFleet, tmp_path: Path) -> None:
    plan = fake_plan(tmp_path, identify=partial(identify_first_with, tmp_path))
    fleet = start_fleet(plan=plan, wait=False)
    eventually(lambda: len(fleet.get("/v1/fleet").document()["replicas"]) == 2, 60)
    found = {one["state"]: one for one in fleet.get("/v1/fleet").document()["replicas"]}
    assert found["odd"]["differs_in"] == ["model file model.safetensors", "image digest"]
    assert found["odd"]["digests"]["image"] != found["serving"]["digests"]["image"]
    answer = fleet.get("/health/ready")
    assert answer.status == 503
    assert f"replica {found['odd']['key']} on node" in answer.document()["detail"]
    assert fleet.metric('assay_replicas{state="odd"}') == 1
    assert fleet.get("/v1/capabilities").document()["max_concurrent_requests"] == 2
    assert fleet.ask(speech_bytes("frames=3")).whole().endswith(b"--\r\n")


def test_metrics_of_replicas_are_labelled_by_index(start_fleet: StartFleet) -> None:
    fleet = start_fleet()
    fleet.workshop.hold(3)
    wire, _ = fleet.begin("frames=9")
    first_audio(wire)
    assert fleet.metric('assay_replica_active_requests{replica="0"}') == 1
    assert fleet.metric('assay_replica_active_requests{replica="1"}') == 0
    assert fleet.metric('assay_replica_slots{replica="1"}') == 2
    eventually(lambda: fleet.metric('assay_replica_frame_steps_total{replica="0"}') == 3)
    eventually(lambda: fleet.metric("assay_engine_frame_steps_total") == 3)
